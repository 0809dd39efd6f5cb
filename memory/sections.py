"""Chapters and sections as spans: from the file's own contents, else from its headings."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from memory.blocks import Outline
from memory.characters import clean
from memory.document import Page, Section, Span

_LETTERS = re.compile(r"[^\W_]+")
_SURE_LETTERS = 4  # a shorter title stands within many a line by chance
_SEARCHED_BLOCKS = 500


def sections(
    text: str,
    *,
    pages: Sequence[Page],
    block_starts: Sequence[Sequence[int]],
    outline: Sequence[Outline],
    headings: Sequence[tuple[int, Outline]],
) -> tuple[Section, ...]:
    """The sections of a document, in order of their start.

    Args:
        text: Its canonical text.
        pages: Its pages.
        block_starts: Where the blocks of each page begin.
        outline: The file's own contents, which come before headings.
        headings: With where each begins.
    """
    if not outline:
        return _until_the_next(headings, len(text))
    entries: list[tuple[int, Outline]] = []
    start, last_page = 0, -1
    for entry in outline:
        if 0 <= entry.page < len(pages) and clean(entry.title).strip():
            page = pages[entry.page].span
            # Entries of one page come in order, so one that is not found follows the last.
            earliest = start if entry.page == last_page else page.start
            starts = block_starts[entry.page]
            start = _find(entry, text, Span(earliest, max(earliest, page.end)), starts)
            last_page = entry.page
            entries.append((start, entry))
    return _until_the_next(sorted(entries, key=lambda item: item[0]), len(text))


def _find(entry: Outline, text: str, place: Span, starts: Sequence[int]) -> int:
    """Where an entry's title stands within the rest of its page, else where that begins."""
    if 0 < entry.block < len(starts):
        return starts[entry.block]
    wanted = _letters(entry.title)
    is_sure = len(wanted) >= _SURE_LETTERS
    within: int | None = None
    first = bisect_left(starts, place.start)
    blocks = zip(starts[first:], [*starts[first + 1 :], place.end], strict=False)
    for start, end in islice(blocks, _SEARCHED_BLOCKS):
        line = _letters(text[start : min(end, start + 4 * len(entry.title) + 40)])
        if line == wanted or (is_sure and line.startswith(wanted)):
            return start
        if within is None and is_sure and wanted in line[: len(wanted) + 12]:
            within = start  # "2.1 Title", "Part 2: Title"
    return place.start if within is None else within


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _until_the_next(entries: Sequence[tuple[int, Outline]], end: int) -> tuple[Section, ...]:
    """Each runs to where the next of the same or a higher level begins."""
    stops = [end] * len(entries)
    around: list[int] = []  # positions of the sections that the next one may lie in
    for i, (start, entry) in enumerate(entries):
        while around and entries[around[-1]][1].level >= entry.level:
            stops[around.pop()] = start
        around.append(i)
    return tuple(
        Section(" ".join(clean(entry.title).split()), max(entry.level, 1), Span(start, stop))
        for (start, entry), stop in zip(entries, stops, strict=True)
    )
