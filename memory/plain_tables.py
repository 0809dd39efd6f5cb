"""Tables drawn with characters, as rows of cells."""

import re
from itertools import chain

_FRAME = re.compile(r"[\s+\-=|:─━┼│┃├┤┌┐└┘┬┴═╔╗╚╝╠╣╦╩╬╪╞╡╤╧]+")
_ROW = re.compile(r"\s*[|│┃║].*[|│┃║]\s*")
_BAR = re.compile(r"[|│┃║]")


def is_drawn_table(lines: list[str]) -> bool:
    """Whether nearly all lines are rows between bars or the frame around them."""
    rows = sum(bool(_ROW.fullmatch(line)) for line in lines)
    frames = sum(bool(_FRAME.fullmatch(line)) for line in lines)
    return rows >= 1 and frames >= 1 and rows + frames >= 0.9 * len(lines)


def drawn_table(lines: list[str]) -> str:
    """Rows a line, cells parted by " | "; lines between two frame lines are one row where many are.

    Args:
        lines: Of the drawing.
    """
    groups: list[list[list[str]]] = [[]]
    for line in lines:
        if _FRAME.fullmatch(line):
            groups.append([])
        else:
            inner = line.strip().strip("|│┃║")
            groups[-1].append([cell.strip() for cell in _BAR.split(inner)])
    groups = [group for group in groups if group]
    is_one_row_each = len(groups) > 2 or (len(groups) == 1 and len(groups[0]) == 1)
    rows = [_merged(group) for group in groups] if is_one_row_each else [*chain(*groups)]
    return "\n".join(" | ".join(row).rstrip() for row in rows)


def _merged(lines: list[list[str]]) -> list[str]:
    width = max(map(len, lines))
    cells = [[line[i] for line in lines if i < len(line) and line[i]] for i in range(width)]
    return [" ".join(cell) for cell in cells]
