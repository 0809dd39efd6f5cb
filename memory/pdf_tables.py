"""Rows of a table among the rows of a column."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.pdf_columns import Row
from memory.pdf_words import WIDE_GAP, Run, is_rtl, joint

_MOST_BETWEEN = 5  # lines of a wrapped cell, from one row to the next


@dataclass(slots=True)
class Cell:
    """Runs that stand close beside each other."""

    text: str
    x0: float
    x1: float

    def is_under(self, other: "Cell", near: float) -> bool:
        """Whether it begins, ends or is centred where the other does."""
        return (
            abs(self.x0 - other.x0) < near
            or abs(self.x1 - other.x1) < near
            or abs(self.x0 + self.x1 - other.x0 - other.x1) < 2 * near
        )


def cells(row: Row) -> list[Cell]:
    """The cells of a row, in reading order."""
    found: list[Cell] = []
    last: Run | None = None
    for run in row.runs:
        gap = max(run.x0 - last.x1, last.x0 - run.x1) if last else 0.0
        if last and gap < WIDE_GAP * row.size:
            cell = found[-1]
            cell.text += joint(cell.text, run.text) + run.text
            cell.x0, cell.x1 = min(cell.x0, run.x0), max(cell.x1, run.x1)
        else:
            found.append(Cell(run.text, run.x0, run.x1))
        last = run
    return found


def table_rows(rows: Sequence[Row]) -> list[bool]:
    """Which rows belong to a table: several cells, under those of a row beside it."""
    parts = [cells(row) if len(row.runs) > 1 else [] for row in rows]
    found = [False] * len(rows)
    for i, j in pairwise(n for n, part in enumerate(parts) if len(part) > 1):
        if j - i > _MOST_BETWEEN or not _is_close(rows[i : j + 1]):
            continue
        tolerance = 0.35 * rows[i].size
        aligned = sum(
            any(cell.is_under(other, tolerance) for other in parts[i][1:]) for cell in parts[j][1:]
        )
        if 2 * aligned >= min(len(parts[i]), len(parts[j])) - 1:
            found[i : j + 1] = [True] * (j - i + 1)
    for n in range(1, len(rows)):  # the last lines of the last row
        if found[n - 1] and not found[n] and len(rows[n].runs) == 1:
            found[n] = _goes_on(cells(rows[n]), _last_cells(parts, n), rows[n], rows[n - 1])
    return found


def _is_close(rows: Sequence[Row]) -> bool:
    """Whether rows follow each other, those between the outer two no lines of running text."""
    steps = [below.base - above.base for above, below in pairwise(rows)]
    narrow = all(row.x1 - row.x0 < 0.7 * (row.right - row.left) for row in rows[1:-1])
    limit = 4.0 if len(rows) == 2 else 2.0
    return narrow and all(0 < step < limit * rows[0].size for step in steps)


def _last_cells(parts: Sequence[list[Cell]], before: int) -> list[Cell]:
    return next(part for part in reversed(parts[:before]) if len(part) > 1)


def table_text(rows: Sequence[Row]) -> str:
    """Rows of a table, one a line, cells parted by " | "; wrapped cells made whole."""
    lines: list[list[Cell]] = []
    before: Row | None = None
    for row in rows:
        parts = cells(row)
        if lines and before and _goes_on(parts, lines[-1], row, before):
            for part in parts:
                cell = max(lines[-1], key=lambda c: _overlap(c, part))
                cell.text += joint(cell.text, part.text) + part.text
                cell.x0, cell.x1 = min(cell.x0, part.x0), max(cell.x1, part.x1)
        else:
            lines.append(parts)
        before = row
    return "\n".join(" | ".join(cell.text for cell in line) for line in lines)


def _goes_on(parts: list[Cell], line: list[Cell], row: Row, before: Row) -> bool:
    """Whether cells are the next lines of the cells above: none stands in the first column."""
    if row.base - before.base > 1.35 * max(row.size, before.size) or len(parts) >= len(line):
        return False
    rtl = is_rtl(" ".join(cell.text for cell in line))
    first = line[0]
    in_first = any(
        part.x1 > first.x0 if rtl else part.x0 < first.x1 and part.x0 < line[1].x0 for part in parts
    )
    return not in_first and all(any(_overlap(c, p) > 0 for c in line) for p in parts)


def _overlap(one: Cell, other: Cell) -> float:
    return min(one.x1, other.x1) - max(one.x0, other.x0)
