"""Notes in the margin of every part; the relevant ones stand before the answer."""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from agents.answer import place
from agents.answering import MAX_QUESTION_CHARS, Answering, Basis
from agents.desk import Desk
from agents.notebook import Note, basis_of, is_borne_out
from agents.parts import Part, marked, named, plan
from agents.passages import gather
from agents.prompting import fenced, render, text_of
from agents.steps import Degraded, Noted, Searched, Step
from serving.asking import ask, field, says_yes
from serving.errors import BadReply
from serving.model import Message, Usage

__all__ = ["MarginsReader"]

_MOST_FAILURES = 3  # parts in a row; a model that fails so often is not asked for hours
_NOTE = {
    "type": "object",
    "properties": {"note": {"type": "string"}},
    "required": ["note"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class MarginsReader:
    """Reads part by part and notes what bears on the question (WiM, arXiv:2408.14906).

    Whether a part does is told by the log-probability of yes against no, before anything is
    written. The part stands before the question in the prompt, so that the next question about
    the same document finds it in the prefix cache.

    Attributes:
        max_parts: Most parts that are read; 0 reads all, which may take long.
        part_tokens: About how long a part is; 0 takes the token budget.
        needed: Probability from which a part counts as relevant.
        note_tokens: Most tokens of a note.
        top_k: How many passages the search gives: what is read where not all is, and what is
            answered from where no part is relevant.
    """

    max_parts: int = 0
    part_tokens: int = 0
    needed: float = 0.5
    note_tokens: int = 120
    top_k: int = 12

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Noted (or Degraded) for each part, Assembled, Drafting…, Verified, Answer."""
        answering = Answering("margins", time.perf_counter())
        passages = desk.search(question, self.top_k)
        yield Searched(question, tuple(passages))
        reading = plan(desk, passages, part_tokens=self.part_tokens, max_parts=self.max_parts)
        yield from reading.steps(desk)
        notes, usage = yield from self._notes(desk, question, reading.parts)
        if notes:
            basis = yield from basis_of(desk, question, notes, passages, share=0.5)
        elif passages:
            yield Degraded("answers from what the search found", "no part was found relevant")
            basis = yield from gather(desk, question, passages)
        else:
            yield answering.not_found(desk, Basis("", (), ()), usage)
            return
        yield from answering.answer(desk, question, basis, usage)

    def _notes(
        self, desk: Desk, question: str, parts: Sequence[Part]
    ) -> Generator[Step, None, tuple[list[Note], Usage]]:
        notes: list[Note] = []
        usage = Usage()
        failures = 0
        for number, part in enumerate(parts, 1):
            margin = self._margin(desk, question, part)
            usage += margin.usage
            failures = failures + 1 if margin.failed else 0
            if margin.failed:
                yield Degraded(margin.instead.format(part=f"part {number}"), margin.failed)
            where = place(desk.document(part.document_id), part.span)
            relevant = margin.relevance >= self.needed
            if relevant:
                text = f"{named(desk, part)}: {margin.note or '…'}"
                notes.append(Note(text, [part], margin.relevance))
            yield Noted(where, margin.note, relevant, number, len(parts), margin.usage)
            if failures >= _MOST_FAILURES and number < len(parts):
                yield Degraded(
                    f"stops after part {number} of {len(parts)}", f"{failures} in a row failed"
                )
                break
        return notes, usage

    def _margin(self, desk: Desk, question: str, part: Part) -> "_Margin":
        messages = self._prompt(desk, question, part)
        judged = says_yes(desk.model, messages)
        if judged.value is None:
            said = "takes" if part.found else "leaves"
            return _Margin(
                1.0 if part.found else 0.0,
                usage=judged.usage,
                failed=judged.why,
                instead=f"{said} {{part}} as the search did",
            )
        if judged.value < self.needed:
            return _Margin(judged.value, usage=judged.usage)

        def note(reply: object) -> str:
            said = " ".join(field(reply, "note", str).split())
            if not any(character.isalnum() for character in said):
                raise BadReply("the note is empty")
            if not is_borne_out(desk, question, said, part):
                raise BadReply("the part does not say so; note only what it says")
            return said

        written = ask(
            desk.model,
            [*messages, Message("assistant", "yes"), Message("user", text_of("margin-note"))],
            schema=_NOTE,
            read=note,
            max_tokens=self.note_tokens,
        )
        return _Margin(
            judged.value,
            note=written.value or "",
            usage=judged.usage + written.usage,
            failed=written.why,
            instead="keeps {part} without a note",
        )

    def _prompt(self, desk: Desk, question: str, part: Part) -> list[Message]:
        return render(
            "margin", part=fenced(marked(desk, part)), question=question[:MAX_QUESTION_CHARS]
        )


@dataclass(frozen=True, slots=True)
class _Margin:
    """What was made of a part; ``failed`` says why the model's reply could not be used."""

    relevance: float
    note: str = ""
    usage: Usage = Usage()
    failed: str = ""
    instead: str = ""
