"""Lines of a plain text file as blocks: what the writer of the file meant by its line ends."""

import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from memory.blocks import Block, BlockKind
from memory.plain_headings import heading, is_numbered
from memory.plain_tables import drawn_table, is_drawn_table

_ITEM = re.compile(r"\s*(?:[-*•·‣◦–+o]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_RULE = re.compile(r"\s*(?:[-=*_~#+.·—─━]\s?){4,}\s*")
_DRAWN = re.compile(r"[│┃├┤┌└┬┼═║]|\|.*\||[+-]{4,}|\.{5,}|\t| {3,}(?=\S)")
_WIDEST_COLUMN = 120
_SURE_LINES = 30  # fewer must be nearly all alike to tell how they were broken


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How a file breaks its lines.

    Attributes:
        width: Columns up to which its prose is filled, 0 where each line is a paragraph.
    """

    width: int

    @classmethod
    def of(cls, paragraphs: list[list[str]]) -> "Wrapping":
        """Told from the lines that another line follows: filled prose leaves no room at their ends.

        Args:
            paragraphs: Lines of each run without a blank line.
        """
        widths, filled = Counter[int](), Counter[int]()
        for lines in paragraphs:
            for line, following in pairwise(lines):
                if _RULE.fullmatch(line) or _DRAWN.search(line.strip()):
                    continue
                width = columns(line)
                widths[min(width, _WIDEST_COLUMN + 1)] += 1
                # It could have been broken at any column up to where the next word would end.
                for possible in range(width, width + min(_first_word(following), 12) + 1):
                    filled[possible] += 1
        if not filled:
            return cls(0)
        width, count = max(filled.items(), key=lambda pair: (pair[1], pair[0]))
        num_wider = sum(n for w, n in widths.items() if w > width + 3)
        # Verse has its longest lines well beyond its usual ones; prose ends at its column.
        needed = 0.25 if widths.total() >= _SURE_LINES else 0.8
        is_filled = count >= needed * widths.total() and num_wider <= 0.05 * widths.total()
        return cls(width if 40 <= width <= _WIDEST_COLUMN and is_filled else 0)

    def joins(self, line: str, following: str) -> bool:
        """Whether a line goes on in the next: it was full."""
        if not self.width or _DRAWN.search(line.strip()) or _DRAWN.search(following.strip()):
            return False
        width = columns(line)
        return width <= self.width + 3 and width + 1 + _first_word(following) > self.width - 2


def blocks(lines: list[str]) -> Iterator[Block]:
    """Headings, paragraphs, items, and what is to keep its lines.

    Args:
        lines: Without their ends.
    """
    runs = list(_runs(lines))
    wrapping = Wrapping.of(runs)
    plain_numbers = any(is_numbered(run) for run in runs)
    found = [heading(run, plain_numbers=plain_numbers) for run in runs]
    highest = min((one.rank for one in found if one), default=1)
    for run, title in zip(runs, found, strict=True):
        if title:
            yield Block(title.title, "heading", title.rank - highest + 1)
        if rest := run[title.num_lines :] if title else run:
            yield from _paragraphs(rest, wrapping)


def _runs(lines: list[str]) -> Iterator[list[str]]:
    """Lines between blank ones, without those that only draw a line across the page."""
    run: list[str] = []
    for line in lines:
        if line.strip():
            run.append(line.rstrip())
        elif run:
            yield run
            run = []
    if run:
        yield run


def _paragraphs(run: list[str], wrapping: Wrapping) -> Iterator[Block]:
    if is_drawn_table(run):
        yield Block(drawn_table(run), "table")
        return
    piece: list[str] = []
    is_item = False
    for line in run:
        starts_item = bool(_ITEM.match(line)) and not (
            piece and not is_item and wrapping.joins(piece[-1], line)
        )
        if _RULE.fullmatch(line) or starts_item or len(line) > _WIDEST_COLUMN:
            yield from _piece(piece, wrapping, is_item=is_item)
            piece, is_item = [], starts_item
        if not _RULE.fullmatch(line):
            piece.append(line)
    yield from _piece(piece, wrapping, is_item=is_item)


def _piece(lines: list[str], wrapping: Wrapping, *, is_item: bool) -> Iterator[Block]:
    """One paragraph or item, or a verse, address or listing that keeps its lines."""
    if not lines:
        return
    kind: BlockKind = "item" if is_item else "paragraph"
    pairs = list(pairwise(lines))
    is_joined = [wrapping.joins(line, following) for line, following in pairs]
    if sum(is_joined) * 2 >= len(pairs):
        text = lines[0].strip()
        for joined, (_, following) in zip(is_joined, pairs, strict=True):
            text += (_glue(text, following.strip()) if joined else "\n") + following.strip()
        yield Block(re.sub(r"[ \t]{2,}", " ", text), kind)
        return
    indents = {len(line) - len(line.lstrip()) for line in lines}
    is_listing = len(indents) > 1 and not is_item
    text = textwrap.dedent("\n".join(line.expandtabs(8) for line in lines))
    yield Block(text.strip("\n"), "code" if is_listing else kind)


def _glue(text: str, following: str) -> str:
    """What stands between two joined lines: nothing after a hyphen or between CJK characters."""
    last, first = text[-1], following[0]
    if last == "-" and text[-2:-1].isalnum() and first.isalnum():
        return ""
    return "" if _is_wide(last) and _is_wide(first) and not _is_hangul(first) else " "


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def columns(line: str) -> int:
    """Width of a line on a terminal: East Asian characters take two columns."""
    line = line.expandtabs(8)
    return len(line) if line.isascii() else len(line) + sum(map(_is_wide, line))


def _first_word(line: str) -> int:
    """Columns of what could have stood at the end of the line before."""
    words = line.split(maxsplit=1)
    word = words[0] if words else ""
    if word.isascii():
        return len(word)
    for place, char in enumerate(word):
        if _is_wide(char):  # a break is allowed before and after it
            return place + 2 if place == 0 else place
    return len(word)
