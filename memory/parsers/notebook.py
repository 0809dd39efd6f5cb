"""Jupyter notebooks: their text, their code and what it printed."""

__all__ = ["NotebookParser"]

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.blocks import Block, Info, PageStart, Part
from memory.characters import clean
from memory.encodings import decode
from memory.errors import UnreadableDocument
from memory.files import read_bytes
from memory.parsers.markdown import markdown_parts

_MOST_OUTPUT_CHARS = 20_000  # of one cell; more is data, not text


@dataclass(frozen=True, slots=True)
class NotebookParser:
    """Reads the cells in order; pictures among the results are not read.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 256 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part; headings are those of the text cells."""
        try:
            notebook = json.loads(decode(read_bytes(path, self.max_bytes)).text)
            # Before version 4 the cells lay in worksheets.
            sheets = notebook.get("worksheets") or [notebook]
            cells = [cell for sheet in sheets for cell in sheet["cells"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableDocument(
                f"{path.name!r} is no Jupyter notebook ({error}); open it in Jupyter, save it anew"
            ) from error
        yield Info("application/x-ipynb+json")
        yield PageStart()
        for cell in cells:
            if isinstance(cell, dict):
                yield from _cell(cell)


def _cell(cell: dict[str, Any]) -> Iterator[Part]:
    source = clean(_text(cell.get("source", cell.get("input", ""))))
    if cell.get("cell_type") == "markdown":
        yield from (part for part in markdown_parts(source) if isinstance(part, Block))
    elif cell.get("cell_type") == "heading":
        yield Block(source.strip(), "heading", min(max(int(cell.get("level") or 1), 1), 6))
    elif source.strip():
        yield Block(source.strip("\n"), "code")
    for output in cell.get("outputs") or ():
        data = output.get("data") or output
        text = _text(output.get("text") or data.get("text/plain") or output.get("evalue") or "")
        if text.strip():
            yield Block(clean(text).strip("\n")[:_MOST_OUTPUT_CHARS], "code")


def _text(lines: Any) -> str:
    """A notebook keeps a text whole or as a list of its lines."""
    return lines if isinstance(lines, str) else "".join(map(str, lines or ()))
