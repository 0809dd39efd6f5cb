"""Sentences as spans: what pruning keeps or drops, and what a citation quotes."""

import re
from collections.abc import Iterator

from memory.document import Span

MAX_CHARS = 1_000
"""A longer run without an end of sentence is cut where a clause ends, or at a space."""

_CLAUSE = re.compile(r"[,;:，；：、،؛—–)\]}”»]\s*|\s+")


def sentences(text: str, *, language: str = "en") -> list[Span]:
    """The sentences of a text, ascending, without white space at either end.

    Together they cover every character that is not white space. A line end always ends one: in
    canonical text it stands only between paragraphs, rows, items, and lines of code or verse.

    Args:
        text: Canonical text, or a part of it.
        language: ISO 639-1 code, for abbreviations.
    """
    found: list[Span] = []
    start = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            found.extend(_in_line(text, Span(start, start + len(line)), language))
        start += len(line) + 1
    return found


def _in_line(text: str, line: Span, language: str) -> Iterator[Span]:
    from sentencex import segment

    pieces = segment(language or "en", line.of(text))
    if "".join(pieces) != line.of(text):  # never seen; a place must not be wrong if it happens
        pieces = [line.of(text)]
    start = line.start
    for piece in pieces:
        yield from _bounded(text, Span(start, start + len(piece)))
        start += len(piece)


def _bounded(text: str, span: Span) -> Iterator[Span]:
    """The span without white space around it, cut where it is too long."""
    while True:
        trimmed = trim(text, span)
        if not len(trimmed):
            return
        if len(trimmed) <= MAX_CHARS:
            yield trimmed
            return
        cut = cut_before(text, trimmed, trimmed.start + MAX_CHARS)
        head = trim(text, Span(trimmed.start, cut))
        if len(head):
            yield head
        span = Span(cut, trimmed.end)


def trim(text: str, span: Span) -> Span:
    """The span without white space at either end; an empty one where there is nothing else."""
    piece = span.of(text)
    start = span.start + len(piece) - len(piece.lstrip())
    return (
        Span(start, start + len(piece.strip())) if piece.strip() else Span(span.start, span.start)
    )


def cut_before(text: str, span: Span, limit: int) -> int:
    """Where to cut a span at or before ``limit``: a clause's end, else a space, else there.

    The cut lies after the first half of what is allowed, so that no tiny piece comes of it.
    """
    earliest = span.start + (limit - span.start) // 2
    best_space, best_clause = 0, 0
    for match in _CLAUSE.finditer(text, earliest, limit):
        if match.group().isspace():
            best_space = match.end()
        else:
            best_clause = match.end()
    return best_clause or best_space or limit
