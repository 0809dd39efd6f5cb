"""HTML: manuals, and pages saved from the web. Nothing that a page refers to is fetched."""

__all__ = ["HtmlParser"]

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memory.blocks import Block, Info, PageStart, Part
from memory.characters import clean
from memory.encodings import declared_encoding, decode
from memory.files import read_bytes
from memory.markup import Markup
from memory.markup_parts import PageMark
from memory.trees import html_tree, xhtml_tree

_XHTML = re.compile(r"<html[^>]{0,500}xmlns\s*=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlParser:
    """Reads what a reader of the page sees: no scripts, hidden parts or links around the text.

    Attributes:
        max_bytes: Largest file that is read.
    """

    max_bytes: int = 256 * 2**20

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """One page (or as many as the file marks), headings as they stand."""
        data = read_bytes(path, self.max_bytes)
        decoded = decode(data, declared_encoding(data))
        is_xhtml = bool(_XHTML.search(decoded.text[:4096]))
        root = xhtml_tree(decoded.text) if is_xhtml else html_tree(decoded.text)
        yield from html_parts(root, media_type="application/xhtml+xml" if is_xhtml else "text/html")
        yield from decoded.problems


def html_parts(root: Any, *, media_type: str, title: str = "") -> Iterator[Part]:
    """The parts of a document that is one tree.

    Args:
        root: An lxml element, or None where there is nothing.
        media_type: Of the file.
        title: Where it is known from elsewhere; else the tree's ``<title>``.
    """
    if root is None:
        yield Info(media_type, title)
        yield PageStart()
        return
    own_title = "".join(root.xpath("string((//*[local-name()='title'])[1])"))
    language = language_code(root.get("lang") or root.get(XML_LANG) or "")
    is_paged = bool(root.xpath("boolean(//*[contains(@role,'doc-pagebreak')])"))
    yield Info(media_type, title or " ".join(clean(own_title).split()), language, paged=is_paged)
    yield PageStart()
    markup, has_text = Markup(), False
    for keep_navigation in (False, True):  # a page of nothing but links is read for its links
        if has_text:
            break
        for part in replace(markup, keep_navigation=keep_navigation).walk(root):
            if isinstance(part, PageMark):
                yield PageStart(part.label)
            elif isinstance(part, Block):
                has_text = True
                yield part


XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def language_code(tag: str) -> str:
    """ISO 639-1 of a language tag ("en-US"), empty where it has none."""
    code = re.split("[-_]", tag.strip().lower())[0]
    return code if re.fullmatch("[a-z]{2}", code) else ""
