"""ODT: texts of LibreOffice, OpenOffice and others."""

__all__ = ["OdtParser"]

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import Any

from memory.archives import Archive, ArchiveLimits, open_archive
from memory.blocks import Part
from memory.characters import clean
from memory.errors import PasswordNeeded, UnreadableDocument
from memory.odf_markup import OFFICE, OdfMarkup
from memory.parsers.html import html_parts, language_code
from memory.trees import xml_tree

_MEDIA_TYPE = "application/vnd.oasis.opendocument.text"


@dataclass(frozen=True, slots=True)
class OdtParser:
    """Reads text, headings, lists, tables, text boxes, formulas and notes.

    Attributes:
        limits: What the package may unpack to.
    """

    limits: ArchiveLimits = field(default_factory=ArchiveLimits)

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One part: the pages are laid out anew on every machine."""
        with open_archive(path, self.limits) as archive:
            _refuse_encrypted(archive)
            content = _tree(archive, "content.xml")
            body = None if content is None else content.find(f"{OFFICE}body/{OFFICE}text")
            if body is None:
                raise UnreadableDocument(f"{path.name!r} holds no OpenDocument text; get it anew")
            styles = _tree(archive, "styles.xml")
            known = [root for root in (styles, content) if root is not None]
            tree = OdfMarkup(known, lambda href: _formula(archive, href)).tree(body)
            title, language = _properties(archive)
            tree.set("lang", language)
            yield from html_parts(tree, media_type=_MEDIA_TYPE, title=title)


def _tree(archive: Archive, name: str) -> Any:
    """The root of a part, None where there is none."""
    if name not in archive.names:
        return None
    return xml_tree(archive.read(name), f"{name!r} in {archive.name!r}")


def _refuse_encrypted(archive: Archive) -> None:
    manifest = _tree(archive, "META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None:
        raise PasswordNeeded(
            f"{archive.name!r} is an OpenDocument text with a password, which is not read; "
            "open it in LibreOffice and save it without one"
        )


def _formula(archive: Archive, href: str) -> Any:
    root = _tree(archive, normpath(f"{href}/content.xml")) if href else None
    return root if root is not None and root.tag.endswith("}math") else None


def _properties(archive: Archive) -> tuple[str, str]:
    """Title and language."""
    root = _tree(archive, "meta.xml")
    if root is None:
        return "", ""
    title = " ".join(clean("".join(root.xpath("string(//*[local-name()='title'])"))).split())
    return title, language_code("".join(root.xpath("string(//*[local-name()='language'])")))
