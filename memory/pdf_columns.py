"""Reading order of a PDF page: its columns, one after the other, each as rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from memory.pdf_words import Run, is_rtl, joint

_MIN_LINES = 4  # a column of fewer lines is no column
_DEEPEST = 4


@dataclass(slots=True)
class Row:
    """What stands on one line of one column.

    Attributes:
        runs: In reading order.
        left, right: Of the column that it stands in.
        column: Number of the column on its page, in reading order.
    """

    runs: list[Run]
    left: float = 0.0
    right: float = 0.0
    column: int = 0
    x0: float = field(init=False)
    x1: float = field(init=False)
    base: float = field(init=False)
    size: float = field(init=False)

    def __post_init__(self) -> None:
        self.x0 = min(run.x0 for run in self.runs)
        self.x1 = max(run.x1 for run in self.runs)
        longest = max(self.runs, key=lambda run: len(run.text))
        self.base, self.size = longest.base, longest.size

    @property
    def text(self) -> str:
        """Its runs with what stands between them."""
        pieces: list[str] = []
        for run in self.runs:
            if pieces:
                pieces.append(joint(pieces[-1], run.text))
            pieces.append(run.text)
        return "".join(pieces)


@dataclass(slots=True)
class Gutters:
    """Where gutters were found on earlier pages; such a place is believed sooner.

    Attributes:
        seen: How often, by place in points.
    """

    seen: Counter[float] = field(default_factory=Counter)

    def known(self) -> list[float]:
        """The places found most often."""
        return [x for x, _ in self.seen.most_common(3)]

    def learn(self, x: float) -> None:
        """Remembers a gutter; places nearer than 8 points are one."""
        near = next((old for old in self.seen if abs(old - x) < 8), x)
        self.seen[near] += 1


def in_order(runs: Sequence[Run], gutters: Gutters) -> list[Row]:
    """Rows in reading order, column by column; text of another direction than most comes last."""
    found: list[Row] = []
    for turn in dict.fromkeys(run.turn for run in runs):
        part = [run for run in runs if run.turn == turn]
        letters = "".join(run.text for run in part)
        columns = _columns(part, gutters, rtl=is_rtl(letters), depth=0)
        for number, column in enumerate(columns, found[-1].column + 1 if found else 0):
            rows = rows_of(column)
            left, right = min(r.x0 for r in rows), max(r.x1 for r in rows)
            for row in rows:
                row.left, row.right, row.column = left, right, number
            found.extend(rows)
    return found


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Runs that stand on one line together, from the top down."""
    rows: list[list[Run]] = []
    for run in sorted(runs, key=lambda r: (r.base, r.x0)):
        for row in reversed(rows[-3:]):
            first = row[0]
            shared = min(first.bottom, run.bottom) - max(first.top, run.top)
            lowest = min(first.bottom - first.top, run.bottom - run.top)
            if (
                shared > 0.5 * lowest
                and run.base - first.base < 0.5 * max(run.size, first.size)
                and all(run.x0 >= r.x1 - 1 or run.x1 <= r.x0 + 1 for r in row)
            ):
                row.append(run)
                break
        else:
            rows.append([run])
    for row in rows:
        rtl = is_rtl("".join(run.text for run in row))
        row.sort(key=lambda r: -r.x1 if rtl else r.x0)
    return [Row(row) for row in rows]


def _columns(runs: list[Run], gutters: Gutters, *, rtl: bool, depth: int) -> list[list[Run]]:
    """Groups of runs in reading order."""
    if depth >= _DEEPEST or len(runs) < 2 * _MIN_LINES:
        return [runs]
    x = _gutter(runs, gutters)
    if x is None:
        return [runs]
    gutters.learn(x)
    groups: list[list[Run]] = []
    for is_split, band in _bands(runs, x):
        if not is_split:
            groups.append(band)
            continue
        sides = [[r for r in band if r.x1 <= x], [r for r in band if r.x0 >= x]]
        for side in reversed(sides) if rtl else sides:
            if side:
                groups.extend(_columns(side, gutters, rtl=rtl, depth=depth + 1))
    return groups


def _bands(runs: list[Run], x: float) -> list[tuple[bool, list[Run]]]:
    """Bands from the top down: whether x parts it, and its runs.

    What crosses x stands in a band of its own, with what stands beside it on the same line.
    """
    crossing = [r for r in runs if r.x0 < x < r.x1]
    if not crossing:
        return [(True, runs)]
    lines = _merged([(r.top, r.bottom) for r in crossing])
    bands: list[tuple[bool, list[Run]]] = [(n % 2 == 0, []) for n in range(2 * len(lines) + 1)]
    for run in runs:
        middle = (run.top + run.bottom) / 2
        place = 0
        for n, (top, bottom) in enumerate(lines):
            if middle > bottom:
                place = 2 * n + 2
            elif middle >= top:
                place = 2 * n + 1
        bands[place][1].append(run)
    together: list[tuple[bool, list[Run]]] = []
    for is_split, band in bands:
        if not band:
            continue
        # A band with one side only is no place where the page is parted.
        split = is_split and min(sum(r.x1 <= x for r in band), sum(r.x0 >= x for r in band)) > 0
        if together and not split and not together[-1][0]:
            together[-1][1].extend(band)
        else:
            together.append((split, band))
    return together


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for top, bottom in sorted(spans):
        if merged and top <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], bottom))
        else:
            merged.append((top, bottom))
    return merged


def _gutter(runs: list[Run], gutters: Gutters) -> float | None:
    """Where the page is parted, if it is: the left edge of a column with text on both sides."""
    left, right = min(r.x0 for r in runs), max(r.x1 for r in runs)
    size = median(r.size for r in runs)
    edges = Counter(round(r.x0 / 3) for r in runs)
    places = dict.fromkeys(gutters.known(), True)
    for edge, _ in edges.most_common(8):
        if sum(edges[near] for near in (edge - 1, edge, edge + 1)) >= _MIN_LINES:
            column = min(r.x0 for r in runs if abs(round(r.x0 / 3) - edge) <= 1)
            # Close by the column, or further off where a line above it ends short of it.
            for x in (column - 0.25 * size, column - size):
                places.setdefault(x, any(abs(x - known) < 8 for known in gutters.known()))
    best, best_lines = None, 0
    for x, is_known in places.items():
        if x - left >= 6 * size and right - x >= 6 * size:
            lines = _lines_parted(runs, x, left=left, right=right, known=is_known)
            if lines > best_lines:
                best, best_lines = x, lines
    return best


def _lines_parted(runs: list[Run], x: float, *, left: float, right: float, known: bool) -> int:
    """How many lines stand in bands that x parts into columns of running text."""
    lines = 0
    for is_split, band in _bands(runs, x):
        if not is_split:
            continue
        before = rows_of([r for r in band if r.x1 <= x])
        after = rows_of([r for r in band if r.x0 >= x])
        if not before or not after:
            continue
        # The gutter is free all the way, and wider than a space.
        gap = min(r.x0 for r in after) - max(r.x1 for r in before)
        if gap < 0.6 * median(r.size for r in (*before, *after)):
            continue
        if min(len(before), len(after)) < _MIN_LINES:
            if known:
                lines += len(before) + len(after)
            continue
        is_text = _is_text(before, x - left) and _is_text(after, right - x)
        if is_text or (known and len(before) + len(after) >= 3 * _MIN_LINES):
            lines += len(before) + len(after)
    return lines


def _is_text(rows: list[Row], width: float) -> bool:
    """Whether rows are lines of running text: mostly full and of several words."""
    fill = median((row.x1 - row.x0) / width for row in rows)
    letters = median(sum(len(run.text) for run in row.runs) for row in rows)
    parts = median(len(row.runs) for row in rows)
    return fill > 0.55 and letters > 16 and parts < 2
