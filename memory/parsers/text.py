"""Plain text of any age and encoding."""

__all__ = ["TextParser"]

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory.blocks import Info, PageStart, Part
from memory.encodings import decode
from memory.files import read_bytes
from memory.plain_text import blocks

# A form feed that stands where a line begins or ends parts pages; elsewhere it is debris.
_PAGE_END = re.compile(r"(?:^|(?<=\n))[ \t]*\f|[ \t]*\f[ \t]*(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class TextParser:
    """Reads paragraphs, joining lines where the file breaks them at a column; pages by form feeds.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 256 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """Paragraphs, headings that are sure, and lists; verse and listings keep their lines."""
        decoded = decode(read_bytes(path, self.max_bytes))
        pages = [page.replace("\f", " ") for page in _PAGE_END.split(decoded.text)]
        while len(pages) > 1 and not pages[-1].strip():
            pages.pop()
        is_paged = len(pages) > 1
        yield Info("text/plain", paged=is_paged, num_pages=len(pages))
        for page in pages:
            yield PageStart("", "text" if page.strip() or not is_paged else "blank")
            yield from blocks(page.split("\n"))
        yield from decoded.problems
