"""Running headers, footers and page numbers: what repeats on page after page at the same place."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from memory.pdf_columns import Row, rows_of
from memory.pdf_words import PageWords, Run

_NUMBER = re.compile(r"\d+|\b[ivxlcdm]+\b")
_NOT_LETTERS = re.compile(r"[\W_]+")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_MOST_ROWS = 3  # of a header or footer
_NEAR = 4.0  # points: the same place on another page
_ZONE = 0.22  # of the page's height, at each end


@dataclass(frozen=True, slots=True)
class Edge:
    """A row at the top or bottom of a page that may be a header or footer.

    Attributes:
        is_top: At which end.
        key: What it says, without numbers.
        number: The number that begins or ends it, less the page's index: the same on all pages
            where it is the page's number.
        printed: That number as it stands there.
        base: Where it stands.
        row: The row itself.
    """

    is_top: bool
    key: str
    number: int | None
    printed: str
    base: float
    row: Row

    def is_like(self, other: "Edge") -> bool:
        """Whether the other says the same at the same place."""
        return other.key == self.key and self.is_at(other)

    def counts_with(self, other: "Edge") -> bool:
        """Whether both hold the number of their page, at the same place."""
        return self.number is not None and other.number == self.number and self.is_at(other)

    def is_at(self, other: "Edge") -> bool:
        """Whether the other stands at the same place."""
        return other.is_top is self.is_top and abs(other.base - self.base) < _NEAR


@dataclass(slots=True)
class PagePieces:
    """A page on its way through the window.

    Attributes:
        index: Physical index.
        words: Its runs.
        edges: Rows of its header and footer, if it has such, outermost first.
        parted: Whether the rows at the top, and those at the bottom, stand apart from the rest.
        num_rows: All rows of the page.
        sides: Texts that run in another direction than the page's.
    """

    index: int
    words: PageWords
    edges: list[Edge] = field(default_factory=list)
    parted: dict[bool, bool] = field(default_factory=dict)
    num_rows: int = 0
    sides: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Furniture:
    """Takes pages in, gives them back without what repeats, a few pages later.

    Attributes:
        reach: How many pages before and after are compared.
    """

    reach: int = 6
    _window: deque[PagePieces] = field(default_factory=deque)
    _places: Counter[tuple[bool, int]] = field(default_factory=Counter)
    _next: int = 0

    def stripped(
        self, pages: Iterable[tuple[int, PageWords | None]]
    ) -> Iterator[tuple[int, PageWords | None]]:
        """The pages, in order, with their own text only; one without words passes at once."""
        for index, words in pages:
            if words is None:
                yield index, None
                continue
            self._window.append(_pieces(index, words))
            if len(self._window) - self._next > self.reach:
                yield self._strip_next()
        while self._next < len(self._window):
            yield self._strip_next()

    def _strip_next(self) -> tuple[int, PageWords]:
        page = self._window[self._next]
        gone = self._repeating(page)
        if gone and len(gone) == page.num_rows and self._is_usual(page):
            gone = []  # pages of one line each: the line is their text
        if gone:
            lost = {id(run) for edge in gone for run in edge.row.runs}
            page.words.printed = next((e.printed for e in gone if self._counts(e)), "")
            page.words.runs = [run for run in page.words.runs if id(run) not in lost]
        if page.sides:
            others = [other for other in self._window if other is not page and other.num_rows]
            stamps = {s for s in page.sides if 2 * sum(s in o.sides for o in others) > len(others)}
            if len(others) > 1:
                page.words.runs = [r for r in page.words.runs if r.text not in stamps]
        self._next += 1
        if self._next > self.reach:
            self._window.popleft()
            self._next -= 1
        return page.index, page.words

    def _repeating(self, page: PagePieces) -> list[Edge]:
        """Rows of the page's edges that stand on other pages too, from the edge inwards."""
        found = []
        others = [other for other in self._window if other is not page and other.edges]
        for is_top in (True, False):
            inner = [edge for edge in page.edges if edge.is_top is is_top]
            if not inner or _is_inside(inner[0], others):
                continue
            for edge in inner:
                if not self._repeats(edge, others, is_parted=page.parted[is_top]):
                    break
                found.append(edge)
        return found

    def _repeats(self, edge: Edge, others: list[PagePieces], *, is_parted: bool) -> bool:
        same = sum(any(map(edge.is_like, other.edges)) for other in others)
        numbered = sum(any(map(edge.counts_with, other.edges)) for other in others)
        if not is_parted:
            return max(same, numbered) >= 4 and max(same, numbered) >= 0.6 * len(others)
        place = (edge.is_top, round(edge.base / _NEAR))
        if same >= 2 or numbered >= 2:
            self._places[place] += 1
            return True
        # A header with the chapter's name: another text at a place where such stood before.
        return edge.is_top and self._places[place] >= 3 and len(edge.row.text) < 100

    def _counts(self, edge: Edge) -> bool:
        """Whether its number is the page's: on other pages it is theirs."""
        return sum(any(map(edge.counts_with, other.edges)) for other in self._window) > 2

    def _is_usual(self, page: PagePieces) -> bool:
        """Whether most pages around have nothing but such rows."""
        others = [other for other in self._window if other is not page and other.num_rows]
        bare = sum(len(self._repeating(other)) == other.num_rows for other in others)
        return 2 * bare >= len(others)


def _pieces(index: int, words: PageWords) -> PagePieces:
    page = PagePieces(index, words)
    if not words.runs:
        return page
    turn = words.runs[0].turn
    rows = rows_of([run for run in words.runs if run.turn == turn])
    page.sides = {run.text for run in words.runs if run.turn != turn and len(run.text) > 9}
    page.num_rows = len(rows)
    for is_top in (True, False):
        ends = rows if is_top else rows[::-1]
        group = [ends[0]]
        page.parted[is_top] = len(ends) <= _MOST_ROWS
        for before, row in pairwise(ends[: _MOST_ROWS + 1]):
            if abs(row.base - before.base) > 1.5 * max(before.size, row.size):
                page.parted[is_top] = True
                break
            if len(group) < _MOST_ROWS:
                group.append(row)
        for row in group:
            depth = row.base / words.height if words.height else 0.5
            if (depth if is_top else 1 - depth) < _ZONE:
                printed, number = _number(row.runs)
                offset = None if number is None else number - index
                page.edges.append(Edge(is_top, _key(row.runs), offset, printed, row.base, row))
    return page


def _is_inside(edge: Edge, others: list[PagePieces]) -> bool:
    """Whether most other pages have text further out than this outermost row has it."""
    outer = 0
    for other in others:
        first = next((e for e in other.edges if e.is_top is edge.is_top), None)
        if first:
            further = edge.base - first.base if edge.is_top else first.base - edge.base
            outer += further > 2 * _NEAR
    return 2 * outer > len(others)


def _number(runs: list[Run]) -> tuple[str, int | None]:
    """The page number that a row begins or ends with, Roman ones too."""
    for word in (runs[-1].text.split()[-1], runs[0].text.split()[0]):
        bare = word.strip("-–—[]().| ")
        if bare.isdecimal() and len(bare) < 6:
            return bare, int(bare)
        if bare and not set(bare.casefold()) - set(_ROMAN):
            values = [_ROMAN[c] for c in bare.casefold()]
            return bare, sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
    return "", None


def _key(runs: list[Run]) -> str:
    """What a row says, without its numbers; "1 2 3" keeps them, a row of a table is no header."""
    text = " ".join(sorted(run.text for run in runs)).casefold()
    bare = _NOT_LETTERS.sub(" ", _NUMBER.sub("#", text)).strip()
    if not bare and len(_NUMBER.findall(text)) > 2:
        return text
    return bare
