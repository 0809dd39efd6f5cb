"""What a parser yields: a stream of parts, in reading order, that ``memory/canonical.py`` joins."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from memory.document import PageSource, Problem

BlockKind = Literal["paragraph", "heading", "item", "table", "code", "note", "caption"]


@dataclass(frozen=True, slots=True)
class PageStart:
    """A page (or part) begins; all that follows stands on it. Pages come in order, none left out.

    Attributes:
        label: The printed page number, empty where unknown.
        source: How the text of this page is had, as in ``memory.document.Page``.
    """

    label: str = ""
    source: PageSource = "text"


@dataclass(frozen=True, slots=True)
class Reading:
    """A sign of life from a parser whose pages come later: it is at this page now.

    A page that is slow to read should have one, or the parser may be taken for stalled.

    Attributes:
        page: Physical index.
        source: How its text will be had.
    """

    page: int
    source: PageSource = "text"


@dataclass(frozen=True, slots=True)
class Block:
    """One paragraph, heading, list item, table, listing or note.

    Attributes:
        text: Its text, NFC not required. Line feeds inside are kept (rows of a table, lines of code
            or verse); cells of a row are parted by " | ". A note begins with its mark: "[3] ".
        kind: What it is.
        level: Of a heading, 1 is the highest; 0 for anything else.
        joins: It goes on from the block before (a paragraph broken by a page end): no blank line
            between them, one space instead (nothing, where ``text`` starts mid-word or in a
            script without spaces and so the parser put ``joins`` to "").
    """

    text: str
    kind: BlockKind = "paragraph"
    level: int = 0
    joins: Literal[" ", ""] | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """An entry of the file's own table of contents, sent after all pages that it can point to.

    Where a parser sends any, they replace the headings as sections.

    Attributes:
        title: As it stands there.
        level: 1 is the highest.
        page: Physical index of the page where it begins.
        block: Position among that page's blocks, 0 where only the page is known (the builder then
            looks for the title in the page's text).
    """

    title: str
    level: int
    page: int
    block: int = 0


@dataclass(frozen=True, slots=True)
class Info:
    """What the file says of itself; sent once, first.

    Attributes:
        media_type: What the file really is.
        title: Empty where the file does not say.
        language: ISO 639-1, or empty.
        paged: Whether the pages are real ones.
        num_pages: Total where known in advance (for progress), else 0.
    """

    media_type: str
    title: str = ""
    language: str = ""
    paged: bool = False
    num_pages: int = 0


Part = Info | PageStart | Reading | Block | Outline | Problem


class Parser(Protocol):
    """Reads one file format.

    Registered by file name in ``memory/parsers/``; dataclass fields are options.
    """

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """Parts of the document, in reading order, as they are read (never the whole at once).

        Raises:
            memory.errors.DocumentError: nothing of it can be read.
        """
        ...
