"""What an EPUB says of itself: metadata, reading order, tables of contents and of pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from memory.archives import Archive
from memory.document import Problem
from memory.errors import DocumentProtected, UnreadableDocument
from memory.markup_inline import local_name
from memory.note_links import resolve, types_of
from memory.trees import xhtml_tree, xml_tree

_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGE_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1")


@dataclass(frozen=True, slots=True)
class TocEntry:
    """A line of a table of contents: where it leads is "file" or "file#id"."""

    title: str
    level: int
    target: str


@dataclass(frozen=True, slots=True)
class Package:
    """An EPUB's package document, with its navigation.

    Attributes:
        title: Of the book.
        language: As declared.
        files: Paths of its text in reading order; what lies outside the main line comes last.
        nav: Path of the navigation document, empty where there is none.
        toc: Table of contents.
        pages: Printed page labels by target.
        problems: With the navigation; the text is read all the same.
    """

    title: str
    language: str
    files: tuple[str, ...]
    nav: str
    toc: tuple[TocEntry, ...]
    pages: dict[str, str]
    problems: tuple[Problem, ...] = ()


def read_package(archive: Archive) -> Package:
    """The package document and what it leads to.

    Raises:
        UnreadableDocument: there is none, or it names no text.
        DocumentProtected: the text is encrypted.
    """
    path = _package_path(archive)
    root = xml_tree(archive.read(path), f"{path!r} in {archive.name!r}")
    items = {item.get("id"): item for item in root.iter("{*}item")}
    hrefs = {key: resolve(path, item.get("href") or "") for key, item in items.items()}
    spine = [ref for ref in root.iter("{*}itemref") if ref.get("idref") in items]
    spine.sort(key=lambda ref: ref.get("linear") == "no")  # stable: notes and answers come last
    files = [
        hrefs[ref.get("idref")]
        for ref in spine
        if (items[ref.get("idref")].get("media-type") or _PAGE_TYPES[0]).startswith(_PAGE_TYPES)
    ]
    nav = next((hrefs[k] for k, i in items.items() if "nav" in _words(i, "properties")), "")
    ncx = next((hrefs[k] for k, i in items.items() if _words(i, "media-type") & _NCX), "")
    files = [file for file in dict.fromkeys(files) if file in archive.names]
    if not files:
        raise UnreadableDocument(
            f"{archive.name!r} names no text in its reading order; get the book anew"
        )
    _refuse_encrypted(archive, set(files) | {path})
    problems = []
    try:
        toc, pages = _navigation(archive, nav, ncx)
    except UnreadableDocument as error:
        toc, pages = [], {}
        problems.append(Problem(str(error), "sections are taken from the headings instead"))
    title, language = _first(root, "title"), _first(root, "language")
    return Package(title, language, tuple(files), nav, tuple(toc), pages, tuple(problems))


def _navigation(archive: Archive, nav: str, ncx: str) -> tuple[list[TocEntry], dict[str, str]]:
    toc, pages = _from_nav(archive, nav) if nav in archive.names else ([], {})
    if ncx in archive.names and not (toc and pages):
        ncx_toc, ncx_pages = _from_ncx(archive, ncx)
        toc, pages = toc or ncx_toc, pages or ncx_pages
    return toc, pages


_NCX = {"application/x-dtbncx+xml"}


def _package_path(archive: Archive) -> str:
    """Where the package document is: the container says it, else the only one there is."""
    if "META-INF/container.xml" in archive.names:
        container = xml_tree(archive.read("META-INF/container.xml"), "META-INF/container.xml")
        for rootfile in container.iter("{*}rootfile"):
            if (path := unquote(rootfile.get("full-path") or "")) in archive.names:
                return path
    found = sorted((n for n in archive.names if n.lower().endswith(".opf")), key=len)
    if not found:
        raise UnreadableDocument(
            f"{archive.name!r} has no package document (.opf), so it is no whole EPUB; get it anew"
        )
    return found[0]


def _refuse_encrypted(archive: Archive, needed: set[str]) -> None:
    """DRM encrypts the text; a publisher may scramble fonts alone, which harms nothing here."""
    if "META-INF/encryption.xml" not in archive.names:
        return
    root = xml_tree(archive.read("META-INF/encryption.xml"), "META-INF/encryption.xml")
    for data in root.iter("{*}EncryptedData"):
        algorithms = {method.get("Algorithm") for method in data.iter("{*}EncryptionMethod")}
        files = {unquote(ref.get("URI") or "") for ref in data.iter("{*}CipherReference")}
        if files & needed and not algorithms & set(_FONT_OBFUSCATION):
            raise DocumentProtected(
                f"{archive.name!r} is locked by digital rights management and cannot be read; "
                "get an edition without it from the seller"
            )


def _from_nav(archive: Archive, nav: str) -> tuple[list[TocEntry], dict[str, str]]:
    root = xhtml_tree(archive.read(nav).decode("utf-8", errors="replace"))
    toc: list[TocEntry] = []
    pages: dict[str, str] = {}
    for element in root.iter("{*}nav"):
        if "page-list" in types_of(element):
            pages |= {e.target: e.title for e in _nav_entries(element, nav, 1) if "#" in e.target}
        elif "toc" in types_of(element) and not toc:
            toc = list(_nav_entries(element, nav, 1))
    return toc, pages


def _nav_entries(element: Any, nav: str, level: int) -> Iterator[TocEntry]:
    for child in element:
        name = local_name(child.tag)
        if name == "ol":
            yield from _nav_entries(child, nav, level)
        elif name == "li":
            label = next((c for c in child if local_name(c.tag) in ("a", "span")), None)
            if label is not None:
                target = resolve(nav, label.get("href") or "") if label.get("href") else ""
                yield TocEntry(_line("".join(label.itertext())), level, target)
            yield from _nav_entries(child, nav, level + (label is not None))


def _from_ncx(archive: Archive, ncx: str) -> tuple[list[TocEntry], dict[str, str]]:
    root = xml_tree(archive.read(ncx), f"{ncx!r} in {archive.name!r}")
    toc = []
    for point in root.iter("{*}navPoint"):
        level = 1 + sum(1 for _ in point.iterancestors("{*}navPoint"))
        toc.append(TocEntry(*_label_and_target(point, ncx, level)))
    pages = {}
    for target in root.iter("{*}pageTarget"):
        label, _, place = _label_and_target(target, ncx, 0)
        if "#" in place:
            pages[place] = label
    return toc, pages


def _label_and_target(point: Any, ncx: str, level: int) -> tuple[str, int, str]:
    label = point.find("{*}navLabel")
    content = point.find("{*}content")
    href = "" if content is None else content.get("src") or ""
    text = "" if label is None else _line("".join(label.itertext()))
    return text, level, resolve(ncx, href) if href else ""


def _first(root: Any, name: str) -> str:
    for element in root.iter(f"{{http://purl.org/dc/elements/1.1/}}{name}"):
        if text := _line("".join(element.itertext())):
            return text
    return ""


def _line(text: str) -> str:
    return " ".join(text.split())


def _words(item: Any, attribute: str) -> set[str]:
    return set((item.get(attribute) or "").split())
