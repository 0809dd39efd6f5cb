"""A document to chunks: whole sentences, no overlap, nothing left out."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.document import Document, Span
from memory.sentences import cut_before, sentences, trim

CountTokens = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, with what decides where chunks may end."""

    span: Span
    tokens: int
    section: int  # number of the section that begins at or before it
    paragraph: int


def chunk(
    document: Document, *, count_tokens: CountTokens, max_tokens: int, min_tokens: int = 0
) -> list[Span]:
    """Chunks of a document, ascending, that together cover all of its sentences.

    A chunk ends where the next sentence would not fit, before that at a paragraph's end where the
    next paragraph would not fit whole, and always before a section that begins, unless the chunk
    is still shorter than ``min_tokens``.

    Args:
        document: What to chunk.
        count_tokens: Counts a batch of texts; called once for all sentences.
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
    sizes: dict[int, int] = {}
    for unit in units:
        sizes[unit.paragraph] = sizes.get(unit.paragraph, 0) + unit.tokens
    chunks: list[Span] = []
    start, tokens = 0, 0
    for i, unit in enumerate(units):
        if tokens:
            before = units[i - 1]
            new_section = unit.section != before.section and tokens >= least
            new_paragraph = (
                unit.paragraph != before.paragraph
                and tokens >= least
                and tokens + sizes[unit.paragraph] > max_tokens
            )
            if new_section or new_paragraph or tokens + unit.tokens > max_tokens:
                chunks.append(Span(units[start].span.start, before.span.end))
                start, tokens = i, 0
        tokens += unit.tokens
    if units:
        chunks.append(Span(units[start].span.start, units[-1].span.end))
    return chunks


def _units(document: Document, count_tokens: CountTokens, max_tokens: int) -> list[_Unit]:
    text = document.text
    spans = sentences(text, language=document.language)
    counts = count_tokens([span.of(text) for span in spans])
    starts = [section.span.start for section in document.sections]
    units: list[_Unit] = []
    paragraph, last_end = 0, 0
    for span, tokens in zip(spans, counts, strict=True):
        if "\n\n" in text[last_end : span.start]:
            paragraph += 1
        last_end = span.end
        section = bisect_right(starts, span.start)
        pieces = -(-tokens // max_tokens)
        for piece in _parts(text, span, pieces):
            units.append(_Unit(piece, -(-tokens // pieces) if pieces else 0, section, paragraph))
    return units


def _parts(text: str, span: Span, pieces: int) -> list[Span]:
    """A sentence in so many parts of about the same length."""
    parts: list[Span] = []
    while pieces > 1 and len(span) > 1:
        size = max(1, len(span) // pieces)
        cut = max(span.start + 1, cut_before(text, span, span.start + size))
        head = trim(text, Span(span.start, cut))
        if len(head):
            parts.append(head)
        span, pieces = Span(cut, span.end), pieces - 1
    tail = trim(text, span)
    return [*parts, tail] if len(tail) else parts
