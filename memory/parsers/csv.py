"""Tables as text: values parted by commas, semicolons or tabs."""

__all__ = ["CsvParser"]

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory.blocks import Block, Info, PageStart, Part
from memory.encodings import decode
from memory.errors import UnreadableDocument
from memory.files import read_bytes
from memory.rows import table_text


@dataclass(frozen=True, slots=True)
class CsvParser:
    """Reads a row a line, each value led by its column's name where the first row has names.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 128 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part with one table."""
        decoded = decode(read_bytes(path, self.max_bytes))
        sample = decoded.text[:20_000]
        try:
            delimiter = csv.Sniffer().sniff(sample, delimiters=",;\t|").delimiter
        except csv.Error:
            delimiter = max(",;\t|", key=sample.count)
        try:
            rows = list(csv.reader(io.StringIO(decoded.text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise UnreadableDocument(
                f"{path.name!r} is no table ({error}); if it is text, rename it to .txt"
            ) from error
        is_tabbed = path.suffix.lower() == ".tsv"
        yield Info("text/tab-separated-values" if is_tabbed else "text/csv")
        yield PageStart()
        if text := table_text(rows):
            yield Block(text, "table")
        yield from decoded.problems
