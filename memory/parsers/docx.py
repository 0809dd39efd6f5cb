"""DOCX: Word's documents since 2007."""

__all__ = ["DocxParser"]

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Any

from memory.archives import Archive, ArchiveLimits, open_archive
from memory.blocks import Block, Part
from memory.characters import clean
from memory.document import Problem
from memory.errors import UnreadableDocument
from memory.parsers.html import html_parts, language_code
from memory.trees import xml_tree
from memory.word_markup import WordMarkup
from memory.word_styles import Numbering, Styles, W

_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


@dataclass(frozen=True, slots=True)
class DocxParser:
    """Reads text, headings with their numbers, lists, tables, text boxes, formulas and notes.

    Attributes:
        limits: What the package may unpack to.
    """

    limits: ArchiveLimits = field(default_factory=ArchiveLimits)

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part: Word lays out its pages anew on every machine."""
        with open_archive(path, self.limits) as archive:
            main = _main_part(archive)
            root = _tree(archive, main)
            body = None if root is None else root.find(f"{W}body")
            if body is None:
                raise UnreadableDocument(f"{path.name!r} holds no Word document; get it anew")
            problems: list[Problem] = []
            parts = {name: _optional(archive, _beside(main, name), problems) for name in _PARTS}
            notes = {
                (kind, note.get(f"{W}id", "")): note
                for kind in ("footnote", "endnote")
                for note in _children(parts[f"{kind}s.xml"])
                if note.get(f"{W}type", "normal") == "normal"
            }
            markup = WordMarkup(
                Styles.of(parts["styles.xml"]), Numbering.of(parts["numbering.xml"]), notes
            )
            title, language = _properties(archive)
            tree = markup.tree(body)
            tree.set("lang", language)
            yield from html_parts(tree, media_type=_MEDIA_TYPE, title=title)
            yield from problems
            yield from _diagrams(archive)


_PARTS = ("styles.xml", "numbering.xml", "footnotes.xml", "endnotes.xml")


def _main_part(archive: Archive) -> str:
    """Path of the document's text, nearly always "word/document.xml"."""
    for relation in _children(_tree(archive, "_rels/.rels")):
        if (relation.get("Type") or "").endswith("/officeDocument"):
            name = normpath((relation.get("Target") or "").lstrip("/"))
            if name in archive.names:
                return name
    return "word/document.xml"


def _beside(main: str, name: str) -> str:
    return join(dirname(main), name)


def _tree(archive: Archive, name: str) -> Any:
    """The root of a part, None where there is none."""
    if name not in archive.names:
        return None
    return xml_tree(archive.read(name), f"{name!r} in {archive.name!r}")


def _optional(archive: Archive, name: str, problems: list[Problem]) -> Any:
    """The root of a part without which the text can be read too; else the problem is told."""
    try:
        return _tree(archive, name)
    except UnreadableDocument as error:
        problems.append(Problem(str(error), "notes, list numbers or headings may be missing"))
        return None


def _children(root: Any) -> list[Any]:
    return [] if root is None else [child for child in root if isinstance(child.tag, str)]


def _properties(archive: Archive) -> tuple[str, str]:
    """Title and language."""
    root = _tree(archive, "docProps/core.xml")
    if root is None:
        return "", ""
    title = " ".join(clean("".join(root.xpath("string(//*[local-name()='title'])"))).split())
    language = "".join(root.xpath("string(//*[local-name()='language'])"))
    return title, language_code(language)


def _diagrams(archive: Archive) -> Iterator[Part]:
    """The words of drawn diagrams, which stand apart from the text; a word about charts."""
    for name in sorted(archive.names):
        if name.startswith("word/diagrams/data") and (root := _tree(archive, name)) is not None:
            lines = ("".join(p.itertext(f"{_A}t")).strip() for p in root.iter(f"{_A}p"))
            if text := clean("\n".join(line for line in lines if line)):
                yield Block(text, "caption")
    charts = [
        n for n in archive.names if dirname(n) == "word/charts" and basename(n)[:5] == "chart"
    ]
    if charts:
        yield Problem(
            f"{len(charts)} charts are pictures of numbers, which are not read",
            "add the numbers as a table",
        )
