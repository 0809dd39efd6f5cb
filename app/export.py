"""Chats as files to take along: Markdown, Word, JSON, each answer with its citations.

What documents and models say is written so that it stays text: no links, no HTML, no pictures.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

from agents.answer import Answer, Citation
from app.conversations import answer_in
from memory.chats import Turn

Form = Literal["markdown", "docx", "json"]
MEDIA_TYPES: dict[Form, str] = {
    "markdown": "text/markdown",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "json": "application/json",
}
SUFFIXES: dict[Form, str] = {"markdown": ".md", "docx": ".docx", "json": ".json"}
STATES = {
    "running": "This question is still being answered.",
    "stopped": "Stopped before the end; what was written until then was not checked.",
    "interrupted": "Interrupted: the server ended before the answer did.",
    "failed": "This question could not be answered.",
    "withdrawn": "The answer was made from a document that has been deleted, and went with it.",
}

_SPECIAL = re.compile(
    r"([\\`*_{}\[\]<>#|~$&!@]|:(?=//)|(?<=\bwww)\.|^\s*[-+=](?=\s)|^\d+[.)])", re.M
)


def export(turns: Sequence[Turn], form: Form, *, title: str) -> bytes:
    """Turns of a chat as a file.

    Args:
        turns: One answer, or all of a chat.
        form: What kind of file.
        title: Stands at its head.
    """
    if form == "json":
        return json.dumps(_as_data(turns, title), ensure_ascii=False, indent=2).encode()
    if form == "docx":
        from app.export_docx import as_docx

        return as_docx(turns, title)
    return _as_markdown(turns, title).encode()


def file_name(title: str, form: Form) -> str:
    """What to call the file: the title's letters and digits."""
    words = re.sub(r"[^\w]+", "-", title).strip("-")
    return f"{words[:60] or 'chat'}{SUFFIXES[form]}"


def sentences_of(answer: Answer) -> list[tuple[str, tuple[int, ...], bool]]:
    """The answer's text in pieces: (text, numbers of citations from 1, is unsupported)."""
    pieces: list[tuple[str, tuple[int, ...], bool]] = []
    done = 0
    for claim in answer.claims:
        if claim.span.start > done:
            pieces.append((answer.text[done : claim.span.start], (), False))
        text = claim.span.of(answer.text)
        bare = text.rstrip()
        numbers = tuple(sorted(number + 1 for number in claim.citations))
        pieces.append((bare, numbers, not numbers))
        if len(bare) < len(text):
            pieces.append((text[len(bare) :], (), False))
        done = claim.span.end
    if done < len(answer.text):
        pieces.append((answer.text[done:], (), False))
    return pieces


def source_line(citation: Citation) -> str:
    """Document and place of a citation in one line."""
    return f"{citation.title}, {citation.place}"


def spent_line(answer: Answer) -> str:
    """What an answer took: reader, model, time, tokens."""
    usage = answer.usage
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    return (
        f"{answer.reader} · {answer.model} · {answer.seconds:,.1f} s · {calls} · "
        f"{usage.prompt_tokens:,} tokens read ({usage.cached_share:.0%} from the cache), "
        f"{usage.completion_tokens:,} written"
    )


def _as_data(turns: Sequence[Turn], title: str) -> dict[str, object]:
    return {
        "title": title,
        "turns": [
            {
                "question": turn.question,
                "asked_at": turn.asked_at.isoformat(),
                "state": turn.state,
                "reader": turn.reader,
                "answer": turn.answer,
                "draft": turn.draft,
                "error": turn.error,
                "feedback": turn.feedback,
                "steps": [step["says"] for step in turn.steps],
            }
            for turn in turns
        ],
    }


def _as_markdown(turns: Sequence[Turn], title: str) -> str:
    lines = [f"# {_line(title)}", ""]
    for turn in turns:
        lines += [f"## {_line(turn.question)}", ""]
        answer = answer_in(turn)
        if answer is None:
            lines += [f"*{STATES[turn.state]}*", ""]
            lines += [_text(part) for part in (turn.error, turn.draft) if part]
        else:
            lines += _answer_lines(answer)
        lines += [""]
    return "\n".join(lines)


def _answer_lines(answer: Answer) -> list[str]:
    words = "".join(
        _text(text)
        + "".join(f" \\[{number}\\]" for number in numbers)
        + (" *(nothing in the sources bears this out)*" if is_unsupported else "")
        for text, numbers, is_unsupported in sentences_of(answer)
    )
    lines = [words, ""]
    if answer.nearest:
        lines += ["The nearest passages:", ""]
    for number, citation in enumerate(answer.citations or answer.nearest, 1):
        quote = _text(" ".join(citation.quote.split()))
        lines += [f"{number}. {_line(source_line(citation))}  ", f"   “{quote}”"]
    return [*lines, "", f"*{_line(spent_line(answer))}*"]


def _line(text: str) -> str:
    return _text(" ".join(text.split()))


def _text(text: str) -> str:
    """Foreign text in Markdown: every letter as it is, nothing of it obeyed."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)
