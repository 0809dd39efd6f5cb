"""A document to chunks: whole sentences, no overlap, nothing left out."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.document import Document, Span
from memory.sentences import cut_before, sentences, trim

CountTokens = Callable[[Sequence[str]], Sequence[int]]

_COUNTED_AT_ONCE = 4096  # tokenizers keep much more than the count of each text


@dataclass(slots=True)
class _Unit:
    """A sentence, with what decides where chunks may end."""

    span: Span
    tokens: int
    section: int  # number of the section that begins at or before it
    paragraph: int
    paragraph_tokens: int = 0  # from here to its paragraph's end
    section_tokens: int = 0  # from here to its section's end


def chunk(
    document: Document, *, count_tokens: CountTokens, max_tokens: int = 160, min_tokens: int = 0
) -> list[Span]:
    """Chunks of a document, ascending, that together cover all of its sentences.

    A chunk ends where the next sentence would not fit, before that at a paragraph's end where the
    next paragraph would not fit whole, and always before a section that begins, unless the chunk
    is still shorter than ``min_tokens``. What would be left over of a section, shorter than that,
    takes sentences of the chunk before.

    Args:
        document: What to chunk.
        count_tokens: Counts a batch of texts; each sentence is counted once.
        max_tokens: Most tokens of a chunk.
        min_tokens: Shorter chunks go on past a paragraph's or section's end; a quarter of
            ``max_tokens`` where not given.

    Raises:
        ValueError: max_tokens is less than 1.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1; got {max_tokens}")
    least = min_tokens or max_tokens // 4
    units = _units(document, count_tokens, max_tokens)
    chunks: list[Span] = []
    start, tokens = 0, 0
    for i, unit in enumerate(units):
        if i > start:
            before = units[i - 1]
            new_section = unit.section != before.section and tokens >= least
            new_paragraph = (
                unit.paragraph != before.paragraph
                and tokens >= least
                and tokens + unit.paragraph_tokens > max_tokens
            )
            if new_section or new_paragraph or tokens + unit.tokens > max_tokens:
                cut = _leaving_enough(units, start, i, least, max_tokens)
                chunks.append(Span(units[start].span.start, units[cut - 1].span.end))
                start, tokens = cut, sum(taken.tokens for taken in units[cut:i])
        tokens += unit.tokens
    if units:
        chunks.append(Span(units[start].span.start, units[-1].span.end))
    return chunks


def _leaving_enough(units: Sequence[_Unit], start: int, end: int, least: int, most: int) -> int:
    """Where to end a chunk, at ``end`` or before, so that its section's rest is no mere scrap."""
    cut, held = end, sum(unit.tokens for unit in units[start:end])
    if units[end].section != units[end - 1].section:
        return end
    while cut - 1 > start and units[cut].section_tokens < least:
        before = units[cut - 1]
        held -= before.tokens
        if held < least or before.section_tokens > most or before.section != units[end].section:
            return end
        cut -= 1
    return cut


def _units(document: Document, count_tokens: CountTokens, max_tokens: int) -> list[_Unit]:
    text = document.text
    spans = sentences(text, language=document.language)
    starts = [section.span.start for section in document.sections]
    units: list[_Unit] = []
    paragraph, last_end = 0, 0
    for span, tokens in _counted(text, spans, count_tokens, max_tokens):
        if "\n\n" in text[last_end : span.start]:
            paragraph += 1
        last_end = span.end
        units.append(_Unit(span, tokens, bisect_right(starts, span.start), paragraph))
    after = _Unit(Span(0, 0), 0, -1, -1)
    for unit in reversed(units):
        unit.paragraph_tokens = unit.tokens
        unit.section_tokens = unit.tokens
        if unit.paragraph == after.paragraph:
            unit.paragraph_tokens += after.paragraph_tokens
        if unit.section == after.section:
            unit.section_tokens += after.section_tokens
        after = unit
    return units


def _counted(
    text: str, spans: Sequence[Span], count_tokens: CountTokens, max_tokens: int
) -> list[tuple[Span, int]]:
    """The spans with their tokens; one with too many is halved until its parts fit."""
    counted: list[tuple[Span, int]] = []
    for first in range(0, len(spans), _COUNTED_AT_ONCE):
        batch = spans[first : first + _COUNTED_AT_ONCE]
        counts = count_tokens([span.of(text) for span in batch])
        for span, tokens in zip(batch, counts, strict=True):
            halves = _halves(text, span) if tokens > max_tokens else []
            if len(halves) > 1:
                counted.extend(_counted(text, halves, count_tokens, max_tokens))
            else:
                counted.append((span, tokens))
    return counted


def _halves(text: str, span: Span) -> list[Span]:
    """A span in two, cut about its middle; one where it is a single character."""
    if len(span) < 2:
        return [span]
    cut = cut_before(text, span, span.start + max(1, 2 * len(span) // 3))
    parts = (trim(text, Span(span.start, cut)), trim(text, Span(cut, span.end)))
    return [part for part in parts if len(part)]
