"""Tables as one block: a row a line, cells parted by " | "."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from memory.blocks import Block
from memory.markup_parts import PageMark, Walked

_HEADINGS = {f"h{level}" for level in range(1, 7)}
_LONG_CELL_CHARS = 3000


def is_layout(table: Any) -> bool:
    """Whether a table only places text on a page, so that its cells are read as paragraphs."""
    if table.get("role") in ("presentation", "none"):
        return True
    rows = [list(_cells(row)) for row in _rows(table)]
    if not rows or max(map(len, rows)) <= 1:
        return True
    if any(_name(element) in _HEADINGS for element in table.iter()):
        return True
    # Nested tables of short cells are data; a cell as long as a page is a column of the page.
    return any(_is_long(cell) for row in rows for cell in row)


def read(table: Any, walk_cell: Callable[[Any], Iterator[Walked]]) -> Iterator[Walked]:
    """The caption and the rows; a page that begins inside parts the table in two.

    Args:
        table: An lxml element.
        walk_cell: What stands in a cell.
    """
    for caption in table.iterchildren("{*}caption"):
        text = " ".join(part.text for part in walk_cell(caption) if isinstance(part, Block))
        if text:
            yield Block(text, "caption")
    lines: list[str] = []
    for row in _rows(table):
        texts: list[str] = []
        for cell in _cells(row):
            inside = list(walk_cell(cell))
            pages = [part for part in inside if isinstance(part, PageMark)]
            if pages and lines:
                yield Block("\n".join(lines), "table")
                lines = []
            yield from (part for part in inside if not isinstance(part, Block))
            texts.append(_one_line(part for part in inside if isinstance(part, Block)))
        if any(texts):
            lines.append(" | ".join(texts).rstrip())
    if lines:
        yield Block("\n".join(lines), "table")


def _one_line(blocks: Iterator[Block]) -> str:
    texts = (
        re.sub(r" ?\n ?", "; " if block.kind == "table" else " ", block.text) for block in blocks
    )
    return " ".join(texts)


def _is_long(cell: Any) -> bool:
    length = 0
    for text in cell.itertext():
        length += len(text)
        if length > _LONG_CELL_CHARS:
            return True
    return False


def _rows(table: Any) -> Iterator[Any]:
    for child in table:
        if _name(child) == "tr":
            yield child
        elif _name(child) in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if _name(row) == "tr")


def _cells(row: Any) -> Iterator[Any]:
    return (cell for cell in row if _name(cell) in ("td", "th"))


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
