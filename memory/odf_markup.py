"""An OpenDocument text as a tree of HTML, for ``memory/markup.py`` to walk."""

from collections.abc import Callable, Iterable
from typing import Any

_OASIS = "{urn:oasis:names:tc:opendocument:xmlns:"
TEXT, OFFICE, STYLE = (_OASIS + f"{name}:1.0}}" for name in ("text", "office", "style"))
_HREF = "{http://www.w3.org/1999/xlink}href"
# Deleted text, remarks in the margin, what only shows under a condition, and settings.
_SKIPPED = {
    *("tracked-changes", "annotation", "annotation-end", "hidden-text", "hidden-paragraph"),
    *("sequence-decls", "variable-decls", "user-field-decls", "forms", "note-citation", "number"),
    *("table-column", "table-columns"),
}
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible"  # names of pictures
_MOST_REPEATS = 100  # spaces


class OdfMarkup:
    """Turns one document into HTML; footnotes follow the paragraph that they belong to.

    Args:
        styles: The roots of ``styles.xml`` and ``content.xml``.
        formula: Root of the MathML of an embedded object, by its path; None for another object.
    """

    def __init__(self, styles: Iterable[Any], formula: Callable[[str], Any]) -> None:
        self._formula = formula
        self._num_notes = 0
        self._waiting: list[Any] = []  # notes whose paragraph is not over
        self._endnotes: list[Any] = []
        self._titles = {"Title"}
        self._ordered: dict[str, list[bool]] = {}
        for root in styles:
            self._learn(root)

    def _learn(self, root: Any) -> None:
        """Which paragraph styles are the title's, which levels of which lists are numbered."""
        for style in root.iter(f"{STYLE}style"):
            if style.get(f"{STYLE}parent-style-name") == "Title":
                self._titles.add(style.get(f"{STYLE}name", ""))
        for style in root.iter(f"{TEXT}list-style"):
            levels = [level for level in style if isinstance(level.tag, str)]
            self._ordered[style.get(f"{STYLE}name", "")] = [
                _name(level) == "list-level-style-number" for level in levels
            ]

    def tree(self, body: Any) -> Any:
        """The ``<body>`` element of what ``office:text`` holds."""
        page = _element("body")
        self._blocks(body, page)
        page.extend(self._endnotes)
        return page

    def _blocks(self, holder: Any, into: Any, lists: tuple[str, ...] = ()) -> None:
        for child in holder:
            name = _name(child)
            if not name or _is_skipped(child, name):
                continue
            if name in ("p", "h"):
                self._paragraph(child, into)
            elif name == "list":
                self._list(child, into, lists)
            elif name == "table" and child.tag.startswith(f"{_OASIS}table"):
                self._table(child, into)
            else:
                self._blocks(child, into, lists)
            if self._waiting and into.tag not in ("td", "li"):
                into.extend(self._waiting)
                self._waiting = []

    def _paragraph(self, paragraph: Any, into: Any) -> None:
        tag = "p"
        if _name(paragraph) == "h":
            level = paragraph.get(f"{TEXT}outline-level", "1")
            tag = f"h{min(max(int(level), 1), 6)}" if level.isdecimal() else "h1"
        elif paragraph.get(f"{TEXT}style-name") in self._titles:
            tag = "h1"
        block = _element(tag, into)
        boxes: list[Any] = []
        self._inline(paragraph, block, boxes)
        for box in boxes:
            self._blocks(box, _element("div", into))

    def _list(self, odf_list: Any, into: Any, lists: tuple[str, ...]) -> None:
        style = odf_list.get(f"{TEXT}style-name") or (lists[-1] if lists else "")
        levels = self._ordered.get(style, [])
        depth = len(lists)
        element = _element("ol" if depth < len(levels) and levels[depth] else "ul", into)
        for item in odf_list:
            if _name(item) in ("list-item", "list-header"):
                line = _element("li", element)
                line.set("value", item.get(f"{TEXT}start-value", ""))
                self._blocks(item, line, (*lists, style))

    def _table(self, table: Any, into: Any) -> None:
        element = _element("table", into)
        for row in table.iter(f"{_OASIS}table:1.0}}table-row"):
            if next(row.iterancestors(table.tag), None) is not table:
                continue  # of a table in a cell
            line = _element("tr", element)
            for cell in row:
                if _name(cell) in ("table-cell", "covered-table-cell"):
                    self._blocks(cell, _element("td", line))
        into.extend(self._waiting)
        self._waiting = []

    def _inline(self, holder: Any, block: Any, boxes: list[Any]) -> None:
        append(block, holder.text)
        for child in holder:
            name = _name(child)
            if name == "s":
                append(block, " " * _repeats(child.get(f"{TEXT}c", "1")))
            elif name == "tab":
                append(block, " ")
            elif name == "line-break":
                _element("br", block)
            elif name == "note":
                self._note(child, block)
            elif name == "ruby":
                self._ruby(child, block)
            elif name == "text-box":
                boxes.append(child)
            elif name == "frame":
                self._frame(child, block, boxes)
            elif name and not _is_skipped(child, name):
                if name == "p":  # of a drawn shape
                    _element("br", block)
                self._inline(child, block, boxes)
            append(block, child.tail)

    def _frame(self, frame: Any, block: Any, boxes: list[Any]) -> None:
        """A picture with words about it, a text box, or a formula."""
        for child in frame.iterchildren("{*}object"):
            formula = self._formula(child.get(_HREF, ""))
            if formula is not None:
                block.append(formula)
                return
        words = [child.text or "" for child in frame.iterchildren("{*}title", "{*}desc")]
        if any(words):
            _element("img", block).set("alt", " ".join(dict.fromkeys(filter(None, words))))
        for child in frame.iterchildren("{*}text-box"):
            boxes.append(child)

    def _ruby(self, ruby: Any, block: Any) -> None:
        element = _element("ruby", block)
        append(element, "".join(ruby.xpath("string(*[local-name()='ruby-base'])")))
        _element("rt", element).text = "".join(ruby.xpath("string(*[local-name()='ruby-text'])"))

    def _note(self, note: Any, block: Any) -> None:
        kind = note.get(f"{TEXT}note-class", "footnote")
        self._num_notes += 1
        target = f"{kind}-{self._num_notes}"
        link = _element("a", block)
        link.set("href", f"#{target}")
        link.set("role", "doc-noteref")
        link.text = str(self._num_notes)
        holder = _element("div")
        holder.set("id", target)
        holder.set("role", f"doc-{kind}")
        (self._endnotes if kind == "endnote" else self._waiting).append(holder)
        for body in note.iterchildren(f"{TEXT}note-body"):
            waiting, self._waiting = self._waiting, []
            self._blocks(body, holder)
            self._waiting = waiting


def append(element: Any, text: str | None) -> None:
    """Adds text at an element's end."""
    if not text:
        return
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _is_skipped(element: Any, name: str) -> bool:
    return name in _SKIPPED or element.tag.startswith(_SVG)


def _repeats(count: str) -> int:
    return min(int(count), _MOST_REPEATS) if count.isdecimal() else 1


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _element(name: str, into: Any = None) -> Any:
    from lxml import etree

    return etree.Element(name) if into is None else etree.SubElement(into, name)
