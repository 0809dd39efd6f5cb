"""The tools with which an agent looks around in documents; the scope is enforced in each.

An agent loop, a protocol server and adapters for other stacks use these same tools. What one may
reach is what ``Reach`` reaches: a document is named by its number in the scope, so that there is
no name for any other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents.answer import place
from memory.document import Document, Section, Span
from memory.gists import GistMemory
from memory.sentences import sentences
from retrieval.assemble import short_title
from retrieval.types import Passage
from serving.errors import BadReply

_OUTLINE_LINES = 60
_HITS = 8
_READ_CHARS = 2_400
_PASSAGES = 3
_MOST_PASSAGES = 10


class Reach(Protocol):
    """What the tools need; ``agents.desk.Desk`` is one."""

    @property
    def documents(self) -> tuple[str, ...]:
        """Ids of the documents in scope, in a stable order."""
        ...

    @property
    def search(self) -> Callable[[str, int], Sequence[Passage]]:
        """(query, top_k) to passages of those documents, the best first."""
        ...

    @property
    def document(self) -> Callable[[str], Document]:
        """Id to document."""
        ...

    @property
    def gists(self) -> Callable[[str], GistMemory]:
        """Id to a document in short, made without a call of the model."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """What a tool shows.

    Attributes:
        text: For the model.
        passages: The source text in it, as it may be cited; a higher score is better.
    """

    text: str
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """Something to call.

    Attributes:
        name: One word.
        does: What it does, for the model.
        parameters: JSON schema of its arguments, an object.
        run: Takes the reach and the arguments. Raises ``BadReply`` where an argument cannot be
            used, in words that the caller can act on.
    """

    name: str
    does: str
    parameters: Mapping[str, Any]
    run: Callable[[Reach, Mapping[str, Any]], Seen]


def outline(reach: Reach, arguments: Mapping[str, Any]) -> Seen:
    """The documents, or the sections of one of them with where they start."""
    if "document" not in arguments:
        lines = []
        for number, key in enumerate(reach.documents[:_OUTLINE_LINES], 1):
            document = reach.document(key)
            pages = f", {len(document.pages):,} pages" if document.paged else ""
            words = len(document.text.split())
            lines.append(
                f"document {number}: {short_title(document.title)}{pages}, {words:,} words"
            )
        return Seen("\n".join(_bounded(lines, len(reach.documents))))
    number, document = _document(reach, arguments)
    sections = _highest(document.sections)
    lines = [
        "  " * (section.level - 1)
        + f"{short_title(section.title)} ({_place(document, section.span)})"
        for section in sections
    ]
    if not lines:
        lines = [
            f"{_first_words(document, start)} ({_place(document, Span(start, start))})"
            for start in range(0, len(document.text), max(1, len(document.text) // 10))
        ]
    return Seen(
        "\n".join(
            [
                f"document {number}: {short_title(document.title)}",
                *_bounded(lines, len(document.sections)),
            ]
        )
    )


def search(reach: Reach, arguments: Mapping[str, Any]) -> Seen:
    """The passages nearest to a query, in meaning and in words."""
    query = _words(arguments, "query")
    top_k = min(_whole(arguments, "top_k", _PASSAGES), _MOST_PASSAGES)
    if "document" in arguments:
        _, document = _document(reach, arguments)
        wide = reach.search(query, top_k * len(reach.documents))
        found = [p for p in wide if p.document_id == document.id][:top_k]
    else:
        found = list(reach.search(query, top_k))
    return shown(reach, found) if found else Seen(f"nothing was found for “{query}”")


def grep(reach: Reach, arguments: Mapping[str, Any]) -> Seen:
    """How often some words stand in the documents, and the first places where."""
    wanted = _words(arguments, "words")
    # Not a pattern of the caller's: one can be written that takes years to match.
    pattern = re.compile(r"\s+".join(map(re.escape, wanted.split())), re.IGNORECASE)
    keys = [_document(reach, arguments)[1].id] if "document" in arguments else reach.documents
    total, found = 0, list[Passage]()
    for key in keys:
        document = reach.document(key)
        for match in pattern.finditer(document.text):
            total += 1
            here = Span(match.start(), match.end())
            if len(found) < _HITS and not any(
                p.document_id == key and p.span.overlaps(here) for p in found
            ):
                span = _sentence_around(document.text, here)
                found.append(Passage(0, key, span, 1.0 - len(found) / 10))
    if not total:
        return Seen(f"“{wanted}” does not stand there")
    times = "once" if total == 1 else f"{total} times"
    seen = shown(reach, found)
    return Seen(f"“{wanted}” stands there {times}; the first places:\n{seen.text}", seen.passages)


def read(reach: Reach, arguments: Mapping[str, Any]) -> Seen:
    """A page or so of a document, from a page's or a place's beginning."""
    number, document = _document(reach, arguments)
    start = _whole(arguments, "start", 0)
    if "page" in arguments:
        page = _whole(arguments, "page", 1)
        if not document.paged or not 1 <= page <= len(document.pages):
            has = f"pages 1 to {len(document.pages)}" if document.paged else "no pages; use start"
            raise BadReply(f"document {number} has {has}; got page {page}")
        start = document.pages[page - 1].span.start
    if not 0 <= start < len(document.text):
        raise BadReply(f"start must be 0 to {len(document.text) - 1}; got {start}")
    begin = _sentence_around(document.text, Span(start, start)).start
    span = Span(begin, min(len(document.text), begin + _READ_CHARS))
    if span.end < len(document.text):
        last = _sentence_around(document.text, Span(span.end, span.end))
        span = Span(begin, last.start if last.start > begin else span.end)
    rest = f"\n(it goes on at start {span.end})" if span.end < len(document.text) else ""
    seen = shown(reach, [Passage(0, document.id, span, 1.0)])
    return Seen(seen.text + rest, seen.passages)


def gists(reach: Reach, arguments: Mapping[str, Any]) -> Seen:
    """A document in short, part by part; what is told in short is nothing to cite."""
    number, document = _document(reach, arguments)
    every = reach.gists(document.id).gists
    first = _whole(arguments, "part", 1)
    if not 1 <= first <= max(len(every), 1):
        raise BadReply(f"part must be 1 to {len(every)}; got {first}")
    lines: list[str] = []
    for gist in every[first - 1 :]:
        line = f"part {gist.number + 1} ({_place(document, gist.span)}): {gist.text}"
        if lines and sum(map(len, lines)) + len(line) > _READ_CHARS:
            break
        lines.append(line)
    rest = len(every) - (first - 1 + len(lines))
    if rest:
        lines.append(f"… {rest:,} more; the next is part {first + len(lines)}")
    return Seen("\n".join([f"document {number} in short: {short_title(document.title)}", *lines]))


_DOCUMENT = {"type": "integer", "minimum": 1, "description": "number of the document"}

TOOLS = (
    Tool(
        "outline",
        "lists the documents, or the sections of one",
        {"type": "object", "properties": {"document": _DOCUMENT}, "additionalProperties": False},
        outline,
    ),
    Tool(
        "search",
        "finds the passages nearest to a question or keywords",
        {
            "type": "object",
            "properties": {"query": {"type": "string"}, "document": _DOCUMENT},
            "required": ["query"],
            "additionalProperties": False,
        },
        search,
    ),
    Tool(
        "grep",
        "counts exact words, and shows the first places where they stand",
        {
            "type": "object",
            "properties": {"words": {"type": "string"}, "document": _DOCUMENT},
            "required": ["words"],
            "additionalProperties": False,
        },
        grep,
    ),
    Tool(
        "read",
        "shows a page of a document from a start that another tool named",
        {
            "type": "object",
            "properties": {
                "document": _DOCUMENT,
                "start": {"type": "integer", "minimum": 0, "description": "as tools show it"},
                "page": {"type": "integer", "minimum": 1, "description": "instead of start"},
            },
            "required": ["document"],
            "additionalProperties": False,
        },
        read,
    ),
    Tool(
        "gists",
        "shows a document in short, part by part, with where each part starts",
        {
            "type": "object",
            "properties": {
                "document": _DOCUMENT,
                "part": {"type": "integer", "minimum": 1, "description": "where to begin"},
            },
            "required": ["document"],
            "additionalProperties": False,
        },
        gists,
    ),
)


def shown(reach: Reach, passages: Sequence[Passage]) -> Seen:
    """Passages as the tools show them: each behind a mark with its document and place."""
    numbers = {key: number for number, key in enumerate(reach.documents, 1)}
    blocks = []
    for passage in passages:
        document = reach.document(passage.document_id)
        path = map(short_title, document.section_path(passage.span.start)[-1:])
        where = ", ".join([*path, _place(document, passage.span)])
        mark = f"[document {numbers[document.id]}, {where}]"
        blocks.append(f"{mark}\n{passage.span.of(document.text).strip()}")
    return Seen("\n\n".join(blocks), tuple(passages))


def _place(document: Document, span: Span) -> str:
    page = place(document, span).first_page
    return f"page {page}, start {span.start}" if page else f"start {span.start}"


def _highest(sections: Sequence[Section]) -> Sequence[Section]:
    """The sections of as many levels as fit an outline."""
    for level in sorted({section.level for section in sections}, reverse=True):
        kept = [section for section in sections if section.level <= level]
        if len(kept) <= _OUTLINE_LINES:
            return kept
    lowest = min((section.level for section in sections), default=1)
    return [section for section in sections if section.level == lowest][:_OUTLINE_LINES]


def _document(reach: Reach, arguments: Mapping[str, Any]) -> tuple[int, Document]:
    number = _whole(arguments, "document", 1)
    if not 1 <= number <= len(reach.documents):
        raise BadReply(f"document must be 1 to {len(reach.documents)}; got {number}")
    return number, reach.document(reach.documents[number - 1])


def _whole(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadReply(f"{name} must be a whole number; got {value!r}")
    return value


def _words(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not any(character.isalnum() for character in value):
        raise BadReply(f"{name} must be some words; got {value!r}")
    return " ".join(value.split())[:400]


def _sentence_around(text: str, here: Span) -> Span:
    """The sentence that holds a place; of a very long line, what lies around it."""
    start = max(text.rfind("\n", 0, here.start) + 1, here.start - 1_500)
    end = text.find("\n", here.end)
    end = min(len(text) if end < 0 else end, here.end + 1_500)
    for sentence in sentences(text[start:end]):
        span = Span(start + sentence.start, start + sentence.end)
        if span.end > here.start:
            return Span(min(span.start, here.start), max(span.end, here.end))
    return here


def _first_words(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + 120].split())[:80]


def _bounded(lines: Sequence[str], total: int) -> list[str]:
    more = total - len(lines)
    return [*lines, f"… {more} more"] if more > 0 else list(lines)
