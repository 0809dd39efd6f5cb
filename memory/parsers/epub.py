"""EPUB 2 and 3: the book in reading order, with its own contents and printed page numbers."""

__all__ = ["EpubParser"]

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from memory.archives import Archive, ArchiveLimits, open_archive
from memory.blocks import Block, Info, Outline, PageStart, Part
from memory.characters import clean
from memory.document import Problem
from memory.encodings import declared_encoding, decode
from memory.epub_package import Package, TocEntry, read_package
from memory.errors import UnreadableDocument
from memory.markup import Markup
from memory.markup_parts import Anchor, PageMark, Walked
from memory.note_links import NoteMarks
from memory.parsers.html import language_code
from memory.trees import xhtml_tree

Source = Literal["text", "blank", "unread"]


@dataclass(frozen=True, slots=True)
class EpubParser:
    """Reads the files of the spine; a page is a printed one where they are marked, else a file.

    Attributes:
        limits: What the package may unpack to.
    """

    limits: ArchiveLimits = field(default_factory=ArchiveLimits)

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """The book; its table of contents follows as ``Outline``."""
        with open_archive(path, self.limits) as archive:
            package = read_package(archive)
            yield from _Reading(archive, package).parts()


class _Reading:
    """One pass over a book: counts pages and blocks, remembers where the contents lead."""

    def __init__(self, archive: Archive, package: Package) -> None:
        self.archive = archive
        self.package = package
        self.marks = NoteMarks()
        self.page = -1
        self.block = 0
        self.places: dict[str, tuple[int, int]] = {}
        self.headings: dict[tuple[int, int], str] = {}
        self.anchors = _by_file(package.toc)

    def parts(self) -> Iterator[Part]:
        package = self.package
        is_paged = self._is_paged()
        yield Info(
            "application/epub+zip",
            clean(package.title),
            language_code(package.language),
            paged=is_paged,
            num_pages=0 if is_paged else len(package.files),
        )
        yield from package.problems
        for file in package.files:
            yield from self._file(file, is_paged=is_paged)
        outline = tuple(self._outline())
        # A contents list of three parts tells less than the headings of thirty chapters.
        if len(outline) > 1 and len(outline) * 2 >= len(self.headings):
            yield from outline

    def _is_paged(self) -> bool:
        """Whether printed pages are marked, told before the first of them is read."""
        listed = {target.partition("#")[0] for target in self.package.pages}
        if listed & set(self.package.files):
            return True
        return any(b"pagebreak" in self._bytes(file) for file in self.package.files)

    def _bytes(self, file: str) -> bytes:
        try:
            return self.archive.read(file)
        except UnreadableDocument:
            return b""  # told when it is its turn

    def _file(self, file: str, *, is_paged: bool) -> Iterator[Part]:
        """A file of the book, from its page's start on."""
        walked: list[Walked] = []
        problems: list[Problem] = []
        source: Source = "text"
        try:
            data = self.archive.read(file)
            decoded = decode(data, declared_encoding(data))
            root = xhtml_tree(decoded.text)
            walked = [] if root is None else list(self._markup(file).walk(root))
            if not any(isinstance(part, Block) for part in walked):
                source = _source_without_text(
                    root, is_cover=self.page < 0 or "cover" in file.lower()
                )
            if source == "unread":
                problems.append(Problem(_PICTURE, _PICTURE_REMEDY, self.page + 1))
            problems += [replace(p, page=max(self.page, 0)) for p in decoded.problems]
        except UnreadableDocument as error:
            source = "unread"
            problems.append(Problem(str(error), "get the book anew", self.page + 1))
        if not is_paged or source == "unread":
            yield self._start("", source)
        self.places[file] = (max(self.page, 0), self.block)
        for part in walked:
            if isinstance(part, Anchor):
                self.places[f"{file}#{part.name}"] = (max(self.page, 0), self.block)
            elif isinstance(part, PageMark):
                if is_paged:
                    yield self._start(part.label)
            else:
                if self.page < 0:
                    yield self._start("")
                if part.kind == "heading":
                    self.headings[self.page, self.block] = part.text
                self.block += 1
                yield part
        yield from problems

    def _start(self, label: str, source: Source = "text") -> PageStart:
        self.page += 1
        self.block = 0
        return PageStart(label, source)

    def _markup(self, file: str) -> Markup:
        package, prefix = self.package, f"{file}#"
        return Markup(
            file=file,
            marks=self.marks,
            anchors=self.anchors.get(file, frozenset()),
            page_labels={
                target.removeprefix(prefix): label
                for target, label in package.pages.items()
                if target.startswith(prefix)
            },
        )

    def _outline(self) -> Iterator[Outline]:
        """The book's own contents, as places in what was read."""
        after: tuple[int, int] | None = None
        entries = []
        for entry in reversed(
            self.package.toc
        ):  # a title without a link begins where the next does
            file = entry.target.partition("#")[0]
            place = self.places.get(entry.target) or self.places.get(file) or after
            if place and entry.title:
                after = place
                title, heading = clean(entry.title), self.headings.get(place, "")
                if heading.endswith(title):  # the heading has its number too: "5.6.12. Version"
                    title = heading
                entries.append(Outline(title, entry.level, *place))
        return reversed(entries)


_PICTURE = "the page is a picture; text in it is not read"
_PICTURE_REMEDY = "if it holds text, print the book to PDF and add that: scanned pages are read"


def _source_without_text(root: Any, *, is_cover: bool) -> Source:
    """Whether a page without text is blank, or a picture that may hold some."""
    if root is None or is_cover:
        return "blank"
    has_picture = next(root.iter("{*}img", "{*}image", "{*}svg", "{*}object", "{*}video"), None)
    return "blank" if has_picture is None else "unread"


def _by_file(toc: tuple[TocEntry, ...]) -> dict[str, frozenset[str]]:
    """Ids that the contents lead to, by file."""
    wanted: dict[str, set[str]] = {}
    for entry in toc:
        file, _, name = entry.target.partition("#")
        wanted.setdefault(file, set()).add(name)
    return {file: frozenset(names) for file, names in wanted.items()}
