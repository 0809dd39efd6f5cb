"""Text to lxml trees that are safe to walk: no DTD, no entity of the file's own, no network."""

import html.entities
import re
from html.parser import HTMLParser
from typing import Any

from memory.errors import UnreadableDocument

_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>\s*")
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>", re.IGNORECASE | re.DOTALL)
_PLAIN_DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*>")  # names a DTD and declares nothing itself
_DECLARING_DOCTYPE = re.compile(rb"<!DOCTYPE[^>]*\[")
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_OWN_ENTITIES = {"amp", "lt", "gt", "quot", "apos"}  # XML knows them by itself
_PROLOGUE_BYTES = 100_000  # a DTD stands before the first element
_MOST_LEVELS = 200
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_SELF_CLOSED = re.compile(rf"<(?!(?:{_VOID})\b)([A-Za-z][\w:-]*)((?:\s[^<>]*?)?)/>")


def xml_tree(data: bytes, what: str) -> Any:
    """The root of a part of a package.

    Args:
        data: Its bytes.
        what: Its name, for messages.

    Raises:
        UnreadableDocument: it is not well formed, or declares things in a DTD, which a sound file
            does not and through which entities could multiply or other files be read.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, dtd_validation=False
    )
    has_dtd = bool(_DECLARING_DOCTYPE.search(data[:_PROLOGUE_BYTES]))
    try:
        root = None if has_dtd else etree.fromstring(_PLAIN_DOCTYPE.sub(b"", data, count=1), parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableDocument(
            f"{what} is damaged ({error}); open it in the program that made it and save it anew"
        ) from error
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        raise UnreadableDocument(
            f"{what} declares entities in a DTD, which a sound file never does and an attack may; "
            "it is not read"
        )
    return root


def xhtml_tree(text: str) -> Any:
    """The root of an XHTML page, read as XML where it is well formed and as HTML where not."""
    from lxml import etree

    plain = _without_declaration(text)
    if found := _DOCTYPE.search(plain, 0, _PROLOGUE_BYTES):
        plain = plain[: found.start()] + plain[found.end() :]
    plain = plain.lstrip()
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, encoding="utf-8"
    )
    try:
        return etree.fromstring(_ENTITY.sub(_character, plain).encode(), parser)
    except etree.XMLSyntaxError:
        # To HTML a self-closed <a id="x"/> would stay open to the end of the page.
        return html_tree(_SELF_CLOSED.sub(r"<\1\2></\1>", plain))


def html_tree(text: str) -> Any:
    """The root of an HTML page however badly it is made; None for one without any element."""
    plain = _without_declaration(text)
    if not plain.strip():
        return None
    root, is_whole = _html(plain)
    # libxml2 leaves out, without an error, all that follows an element nested too deep.
    return root if is_whole else _html(_Flattening.of(plain))[0]


def _without_declaration(text: str) -> str:
    """The text is Unicode now; what the file says of its encoding would only mislead."""
    found = _DECLARATION.match(text)
    return text[found.end() :] if found else text


def _html(text: str) -> tuple[Any, bool]:
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(text.encode(), parser)
    return root, not any("depth" in entry.message for entry in parser.error_log)


class _Flattening(HTMLParser):
    """Writes a page anew without the tags that are nested too deep, keeping their text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._open: list[str] = []
        self._written: list[str] = []

    @classmethod
    def of(cls, text: str) -> str:
        """The page with at most 200 levels."""
        parser = cls()
        parser.feed(text)
        parser.close()
        return "".join(parser._written)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len(self._open) < _MOST_LEVELS:
            self._written.append(self.get_starttag_text() or "")
            if tag not in _VOID.split("|"):
                self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._written.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass
            self._written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._written.append(data)

    def handle_entityref(self, name: str) -> None:
        self._written.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._written.append(f"&#{name};")


def _character(entity: re.Match[str]) -> str:
    name = entity.group(1)
    if name in _OWN_ENTITIES:
        return entity.group()
    return html.entities.html5.get(f"{name};", entity.group())
