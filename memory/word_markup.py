"""A Word document as a tree of HTML, for ``memory/markup.py`` to walk."""

from collections.abc import Iterable
from typing import Any

from memory.word_math import word_math_to_text
from memory.word_styles import Numbering, Styles, W, value

_NOTES = {f"{W}footnoteReference": "footnote", f"{W}endnoteReference": "endnote"}
# Removed by tracked changes, field codes, and what repeats elsewhere.
_SKIPPED = {"del", "moveFrom", "instrText", "delText", "pPr", "rPr", "tblPr", "tcPr", "trPr"}
_TEXTS = {"tab": " ", "noBreakHyphen": "-", "ptab": " "}


class WordMarkup:
    """Turns one document into HTML; footnotes follow the paragraph that they belong to.

    Args:
        styles: Of the document.
        numbering: Of its lists.
        notes: The ``w:footnote`` and ``w:endnote`` elements, by kind and id.
    """

    def __init__(
        self, styles: Styles, numbering: Numbering, notes: dict[tuple[str, str], Any]
    ) -> None:
        self._styles = styles
        self._numbering = numbering
        self._notes = notes
        self._num_notes = 0
        self._waiting: list[Any] = []  # notes whose paragraph is not over
        self._endnotes: list[Any] = []

    def tree(self, body: Any) -> Any:
        """The ``<body>`` element of what ``w:body`` holds."""
        page = _element("body")
        self._blocks(body, page, is_outermost=True)
        page.extend(self._endnotes)
        return page

    def _blocks(self, holder: Any, into: Any, *, is_outermost: bool = False) -> None:
        """Paragraphs and tables of a body, cell, note or text box."""
        for child in holder:
            name = _word_name(child)
            if name == "p":
                self._paragraph(child, into)
            elif name == "tbl":
                self._table(child, into)
            elif name not in _SKIPPED and len(child):
                self._blocks(child, into, is_outermost=is_outermost)
            if is_outermost and self._waiting:
                into.extend(self._waiting)
                self._waiting = []

    def _paragraph(self, paragraph: Any, into: Any) -> None:
        level = self._styles.heading_level(paragraph)
        numbering = self._styles.numbering(paragraph)
        # <dd> is an item to which the walk adds no number of its own.
        block = _element(f"h{min(level, 6)}" if level else "dd" if numbering else "p", into)
        if numbering:
            label = self._numbering.next_label(*numbering)
            _append(block, f"{label} " if label else "")
        boxes: list[Any] = []
        self._inline(paragraph, block, boxes)
        for box in boxes:
            self._blocks(box, _element("div", into))

    def _inline(self, holder: Any, block: Any, boxes: list[Any]) -> None:
        for child in holder:
            name = _word_name(child)
            if name in _SKIPPED or (name == "r" and _is_hidden(child)):
                continue
            if name == "t":
                _append(block, child.text or "")
            elif name in _TEXTS:
                _append(block, _TEXTS[name])
            elif name in ("br", "cr"):
                _element("br", block)
            elif child.tag in _NOTES:
                self._note(_NOTES[child.tag], child.get(f"{W}id", ""), block)
            elif name == "oMath":
                _append(block, f" {word_math_to_text(child)} ")
            elif name == "sym":
                _append(block, _symbol(child))
            elif name == "txbxContent":
                boxes.append(child)
            elif name == "docPr":
                _element("img", block).set("alt", child.get("descr") or "")
            elif name == "ruby":
                self._ruby(child, block)
            elif name == "AlternateContent":
                self._inline(_chosen(child), block, boxes)
            elif len(child):
                self._inline(child, block, boxes)

    def _ruby(self, ruby: Any, block: Any) -> None:
        element = _element("ruby", block)
        _append(element, "".join(ruby.find(f"{W}rubyBase").itertext(f"{W}t")))
        _element("rt", element).text = "".join(ruby.find(f"{W}rt").itertext(f"{W}t"))

    def _note(self, kind: str, note_id: str, block: Any) -> None:
        note = self._notes.get((kind, note_id))
        if note is None:
            return
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
        self._blocks(note, holder)

    def _table(self, table: Any, into: Any) -> None:
        element = _element("table", into)
        for row in _within(table, "tr"):
            line = _element("tr", element)
            for cell in _within(row, "tc"):
                self._blocks(cell, _element("td", line))


def _within(holder: Any, name: str) -> Iterable[Any]:
    """Rows of a table or cells of a row, also those inside content controls."""
    for child in holder:
        if _word_name(child) == name:
            yield child
        elif _word_name(child) in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _within(child, name)


def _chosen(alternatives: Any) -> Any:
    """One of the forms of the same content: the one for older programs has text boxes plainly."""
    fallback = alternatives.find("{*}Fallback")
    has_text = fallback is not None and next(fallback.iter(f"{W}t"), None) is not None
    return fallback if has_text else alternatives.find("{*}Choice") or ()


def _symbol(symbol: Any) -> str:
    """A character of a symbol font; those in the private area have no meaning outside of it."""
    try:
        code = int(symbol.get(f"{W}char", ""), 16)
    except ValueError:
        return ""
    if 0xF000 <= code <= 0xF0FF:
        return _SYMBOL_FONT.get(code - 0xF000, "")
    return chr(code) if code < 0x110000 else ""


_SYMBOL_FONT = {
    **{0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xA3: "≤", 0xB4: "×", 0xB7: "·", 0xB9: "≠", 0xBB: "≈"},
    **{0xAE: "→", 0xAC: "←", 0xA5: "∞", 0xD6: "√", 0xE5: "∑", 0xF2: "∫", 0xFC: "✓", 0xFE: "☑"},
    **{0x61: "α", 0x62: "β", 0x67: "γ", 0x64: "δ", 0x65: "ε", 0x6C: "λ", 0x6D: "μ", 0x70: "π"},
    **{0x73: "σ", 0x71: "θ", 0x66: "φ", 0x77: "ω", 0x44: "Δ", 0x53: "Σ", 0x57: "Ω", 0xA8: "□"},
}


def _is_hidden(run: Any) -> bool:
    vanish = run.find(f"{W}rPr/{W}vanish")
    return vanish is not None and value(run, "rPr/vanish") not in ("0", "false", "off")


def _word_name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _element(name: str, into: Any = None) -> Any:
    from lxml import etree

    return etree.Element(name) if into is None else etree.SubElement(into, name)


def _append(element: Any, text: str) -> None:
    """Adds text at the element's end."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
