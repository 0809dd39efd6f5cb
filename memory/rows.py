"""Rows of a sheet or a CSV file as lines that can be read one by one."""

import re
from collections.abc import Sequence

_MOST_HEADER_CHARS = 80
_NUMBER = re.compile(r"[-+(]?[\d.,:/ %€$£-]+\)?")


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """A line a row; below a header each cell is led by its column's name ("price: 12").

    A passage out of the middle of a long table says so what its numbers are.

    Args:
        rows: Cells, as text.
    """
    lines = [[" ".join(cell.split()) for cell in row] for row in rows]
    lines = [line for line in lines if any(line)]
    if not lines:
        return ""
    header = lines[0]
    if not _is_header(header) or len(lines) < 2:
        return "\n".join(" | ".join(line).rstrip(" |") for line in lines)
    named = (_named(header, line) for line in lines[1:])
    return "\n".join([" | ".join(header), *named])


def _named(header: list[str], line: list[str]) -> str:
    names = header + [""] * (len(line) - len(header))
    cells = zip(names, line, strict=False)
    return " | ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def _is_header(line: list[str]) -> bool:
    """Whether the first row names columns: words, no two alike."""
    if len(line) < 2 or len(set(line)) != len(line) or not all(line):
        return False
    return all(len(cell) <= _MOST_HEADER_CHARS and not _NUMBER.fullmatch(cell) for cell in line)
