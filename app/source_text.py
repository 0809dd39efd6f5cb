"""The text of a document in parts that a page can show, with places marked in it, as plain data.

Nothing here is HTML: what shows it writes letters, so that a document's text stays text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.document import Document, Span

PART_CHARS = 4_000
MAX_HITS = 500
_AROUND_CHARS = 60
_BREAKS = ("\n\n", "\n", " ")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph as runs of text, each marked or not.

    Attributes:
        level: Of the heading that it is; 0 for no heading.
        runs: (text, is marked), in order.
    """

    level: int
    runs: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that a search found, with the words around it."""

    span: Span
    before: str
    match: str
    after: str


def parts(document: Document) -> tuple[Span, ...]:
    """The document in parts: its pages where one can turn to them, else stretches of text.

    Returns:
        At least one; those of an unpaged document have about ``PART_CHARS`` characters each and
        end between paragraphs where they can.
    """
    if document.paged:
        return tuple(page.span for page in document.pages)
    text, cuts = document.text, [0]
    while len(text) - cuts[-1] > PART_CHARS * 3 // 2:
        low, high = cuts[-1] + PART_CHARS // 2, cuts[-1] + PART_CHARS
        at = next((a for gap in _BREAKS if (a := text.rfind(gap, low, high)) >= 0), high)
        cuts.append(at + len(text[at : at + 2]) - len(text[at : at + 2].lstrip()))
    return tuple(Span(*ends) for ends in zip(cuts, [*cuts[1:], len(text)], strict=True))


def part_at(spans: Sequence[Span], offset: int) -> int:
    """Position of the part that holds a character."""
    place = bisect_right(spans, offset, key=lambda span: span.start) - 1
    while place > 0 and not len(spans[place]):
        place -= 1
    return max(place, 0)


def paragraphs(document: Document, part: Span, marks: Sequence[Span]) -> tuple[Paragraph, ...]:
    """The paragraphs of a part, with places marked."""
    text = document.text
    found = []
    for match in re.finditer(r"[^\n](?:(?!\n[ \t]*\n).)*", part.of(text), re.DOTALL):
        span = Span(part.start + match.start(), part.start + match.end())
        if span.of(text).strip():
            found.append(Paragraph(_heading(document, span), _runs(text, span, marks)))
    return tuple(found)


def find_in(document: Document, query: str) -> list[Hit]:
    """Where words stand in a document, in any case and with any spaces between them.

    Returns:
        In document order, at most ``MAX_HITS``.
    """
    words = query.split()
    if not words:
        return []
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    text, hits = document.text, []
    for match in pattern.finditer(text):
        start, end = match.span()
        before = text[max(start - _AROUND_CHARS, 0) : start]
        hits.append(Hit(Span(start, end), before, match[0], text[end : end + _AROUND_CHARS]))
        if len(hits) == MAX_HITS:
            break
    return hits


def _heading(document: Document, span: Span) -> int:
    """Level of the section whose title the paragraph is; 0 where it is none."""
    at = bisect_left(document.sections, span.start, key=lambda section: section.span.start)
    for section in document.sections[at:]:
        if section.span.start >= span.end:
            break
        if len(span) <= 3 * len(section.title) + 20:
            return section.level
    return 0


def _runs(text: str, span: Span, marks: Sequence[Span]) -> tuple[tuple[str, bool], ...]:
    """The text of a span, cut where marks begin and end."""
    inside = [mark for mark in marks if mark.overlaps(span)]
    ends = {span.start, span.end}
    for mark in inside:
        ends |= {max(mark.start, span.start), min(mark.end, span.end)}
    cuts = sorted(ends)
    return tuple(
        (text[a:b], any(mark.start <= a and b <= mark.end for mark in inside))
        for a, b in pairwise(cuts)
    )
