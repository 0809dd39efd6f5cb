"""RTF of WordPad, Word, LibreOffice and others."""

__all__ = ["RtfParser"]

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory.blocks import Block, Info, PageStart, Part
from memory.document import Problem
from memory.files import read_bytes
from memory.rtf_reader import RtfReader


@dataclass(frozen=True, slots=True)
class RtfParser:
    """Reads text in the code pages of its fonts, headings, lists, tables, text boxes and notes.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 256 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part: pages are laid out anew on every machine."""
        reader = RtfReader(read_bytes(path, self.max_bytes))
        blocks: list[Block] = list(reader.blocks())  # the title can stand anywhere
        yield Info("application/rtf", reader.title)
        yield PageStart()
        yield from blocks
        num_replaced = sum(block.text.count("\ufffd") for block in blocks)
        if num_replaced:
            yield Problem(
                f"{num_replaced:,} characters are not valid in their font's code page; "
                "they are shown as \ufffd",
                "save the file as DOCX from the program that made it",
            )
