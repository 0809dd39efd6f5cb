"""A tree of HTML or XHTML as blocks: the shared heart of most parsers."""

import html
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from memory import markup_tables
from memory.blocks import Block, BlockKind
from memory.characters import clean
from memory.markup_inline import (
    alternative_text,
    is_line_number,
    list_marker,
    local_name,
    ruby_text,
    whole_number,
)
from memory.markup_names import BLOCKS, DROPPED, HEADINGS, KINDS, STANZAS
from memory.markup_parts import Anchor, PageMark, Walked
from memory.markup_visibility import is_shown
from memory.mathml import math_to_text
from memory.note_links import NOTE_TYPES, NoteLinks, NoteMarks, find_note_links, types_of

_SPACES = re.compile(r"[ \t\n\r\f]+")
_BREAK = "\v"  # stands for <br> until the spaces around it are collapsed
_BREAKS = re.compile(r" *\v *")
_POWER = re.compile(r"[-−+]?(?:\d{1,3}|n)")
_OWN_MARK = re.compile(r"[\[(]?(\d{1,4}|[*†‡§]{1,3})(?:[\])][.:]?|[.:])\s+")


@dataclass(frozen=True, slots=True)
class _Context:
    """What the text inside the current elements is."""

    kind: BlockKind = "paragraph"
    level: int = 0
    is_code: bool = False
    is_stanza: bool = False
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class Markup:
    """How a tree is read.

    Attributes:
        file: Its path in its container, against which its links are resolved.
        marks: The marks of notes, shared by the files of a book.
        anchors: Ids that are wanted as ``Anchor``.
        page_labels: Label of the printed page that begins at an id.
        keep_navigation: Read ``<nav>`` too.
    """

    file: str = ""
    marks: NoteMarks | None = None
    anchors: frozenset[str] = frozenset()
    page_labels: dict[str, str] | None = None
    keep_navigation: bool = False

    def walk(self, root: Any) -> Iterator[Walked]:
        """Blocks of what a reader sees below ``root``, in order; between them anchors and pages.

        Args:
            root: An lxml element, with or without XHTML's namespace.
        """
        marks = self.marks or NoteMarks()
        return _Walk(self, marks, find_note_links(root, self.file, marks)).walk(root)


class _Walk:
    """One pass over one tree, without recursion: hostile trees are deep."""

    def __init__(
        self, markup: Markup, marks: NoteMarks, links: NoteLinks, num_tables: int = 0
    ) -> None:
        self.num_tables = num_tables  # that this walk is inside of
        self.markup = markup
        self.marks = marks
        self.links = links
        self.context = _Context()
        self.buffer: list[str] = []
        self.is_only_alt = True  # the buffer holds no text but that of images
        self.pending_note: str | None = None  # mark of a note whose text is yet to come
        self.pending_marker = ""  # of a list item
        self.joins: Literal[" ", ""] | None = None  # to the block before, across a page's end
        self.numbers: dict[Any, int] = {}
        self.last_caption = ""

    def walk(self, root: Any) -> Iterator[Walked]:
        stack: list[tuple[Any, _Context | None]] = [(root, None)]
        while stack:
            element, outer = stack.pop()
            if outer is not None:
                yield from self._leave(element, outer)
            else:
                outer = self.context
                is_entered = yield from self._enter(element)
                if is_entered:
                    self._add(element.text)
                    stack.append((element, outer))
                    stack.extend((child, None) for child in reversed(element))
                    continue
                self.context = outer
            if element is not root:
                self._add(element.tail)
        yield from self._flush()

    def _enter(self, element: Any) -> Generator[Walked, None, bool]:
        """Yields what ends before the element; returns whether its content is to be walked."""
        name = local_name(element.tag)
        if not name:
            if getattr(element, "name", None):  # an entity that XML does not know
                self._add(html.unescape(element.text))
            return False
        if name in DROPPED or element in self.links.back:
            return False
        types, ids = types_of(element), [element.get("id"), element.get("name")]
        mark = self._note_mark(ids)
        is_note = mark is not None or bool(types & NOTE_TYPES)  # hidden until it pops up
        if not is_note and not is_shown(element, name, types, self.markup.keep_navigation):
            return False
        if (label := self._page_label(element, types, ids)) is not None:
            yield from self._turn_page(label)
            return False
        if name in BLOCKS:
            yield from self._boundary(element, name, types)
            self.context = self._inside(element, name, types, is_note=mark is not None)
        yield from (Anchor(i) for i in ids if i and i in self.markup.anchors)
        if mark is not None and not "".join(self.buffer).strip():
            self.pending_note = mark
        is_data = name == "table" and self.num_tables < _MOST_TABLES
        if is_data and not markup_tables.is_layout(element):
            yield from markup_tables.read(element, self._walk_cell)
            return False
        return self._begin_inline(element, name)

    def _begin_inline(self, element: Any, name: str) -> bool:
        """Writes what an element says by itself; returns whether its content is to be walked."""
        if element in self.links.references:
            self._add(f"[{self.links.references[element]}]")
            return False
        if name == "br":
            self.buffer.append(_BREAK)
        elif name in ("img", "image", "area"):
            self.buffer.append(f" {alternative_text(element)} ")
        elif name == "math":
            self._add(f" {math_to_text(element)} ")
            return False
        elif name == "ruby":
            self._add(ruby_text(element))
            return False
        elif name == "q":
            self._add("“")
        elif name == "sup" and self._is_power(element):
            self._add("^")
        elif name == "li":
            self.pending_marker = list_marker(element, self.numbers)
        elif is_line_number(element):
            self._add(f" {element.text} ")
            return False
        return True

    def _leave(self, element: Any, outer: _Context) -> Iterator[Walked]:
        name = local_name(element.tag)
        if name == "q":
            self._add("”")
        elif name in BLOCKS:
            yield from self._boundary(element, name, types_of(element))
            self.context = outer
            if name == "li":
                self.pending_marker = ""

    def _walk_cell(self, cell: Any) -> Iterator[Walked]:
        return _Walk(self.markup, self.marks, self.links, self.num_tables + 1).walk(cell)

    def _boundary(self, element: Any, name: str, types: set[str]) -> Iterator[Walked]:
        """A paragraph ends, or only a line of a stanza."""
        if self.context.is_stanza and name not in _PARTING and not _is_stanza(element, types):
            self.buffer.append(_BREAK)
        else:
            yield from self._flush()

    def _turn_page(self, label: str) -> Iterator[Walked]:
        raw = "".join(self.buffer)
        yield from self._flush()
        yield PageMark(label)
        if raw.strip():
            self.joins = " " if raw[-1].isspace() else ""

    def _inside(self, element: Any, name: str, types: set[str], *, is_note: bool) -> _Context:
        """The context of a block element's content."""
        context = self.context
        is_note = is_note or bool(types & NOTE_TYPES) or (name == "dd" and bool(self.pending_note))
        level = HEADINGS.get(name, 0)
        if "heading" in types:
            level = whole_number(element.get("aria-level")) or 2
        if level:
            self.pending_note = None
            return replace(context, kind="heading", level=level, is_stanza=False)
        kind = KINDS.get(name, context.kind)
        if name in ("td", "th", "table"):
            kind = "paragraph"
        return replace(
            context,
            kind=kind,
            is_code=context.is_code or kind == "code",
            is_stanza=context.is_stanza or _is_stanza(element, types),
            is_note=context.is_note or is_note,
        )

    def _flush(self) -> Iterator[Block]:
        """The block that the buffer holds, if any."""
        raw, self.buffer = "".join(self.buffer), []
        joins, self.joins = self.joins, None
        is_only_alt, self.is_only_alt = self.is_only_alt, True
        if not raw.strip():
            return
        if joins == "" and raw[0].isspace():
            joins = " "
        for text in self._texts(raw):
            block = self._block(text, joins, is_only_alt=is_only_alt)
            if block:
                yield block
            joins = None

    def _texts(self, raw: str) -> list[str]:
        """The buffer with its spaces as shown; two line breaks in a row part paragraphs."""
        if self.context.is_code:
            lines = [line.rstrip() for line in clean(raw).expandtabs(8).split("\n")]
            return ["\n".join(lines).strip("\n")]
        text = _BREAKS.sub(_BREAK, _SPACES.sub(" ", raw)).strip(" " + _BREAK)
        if self.context.kind == "heading":
            parts = [re.sub(_BREAK + "+", " ", text).rstrip("¶ ")]
        elif self.context.is_stanza:
            parts = [re.sub(_BREAK + "+", "\n", text)]
        else:
            parts = [part.replace(_BREAK, "\n") for part in re.split(_BREAK + "{2,}", text)]
        # Cleaning can bring spaces together (a no-break space beside one).
        return [re.sub(" {2,}", " ", clean(part)).strip() for part in parts]

    def _block(
        self, text: str, joins: Literal[" ", ""] | None, *, is_only_alt: bool
    ) -> Block | None:
        context, kind = self.context, self.context.kind
        if context.is_note or self.pending_note is not None:
            kind, text = "note", self._marked(text)
        elif is_only_alt and kind in ("paragraph", "item"):
            kind = "caption"
        if self.pending_marker and kind == "item" and text:
            text, self.pending_marker = self.pending_marker + text, ""
        if not text or (kind == "caption" and text == self.last_caption):
            return None
        self.last_caption = text if kind == "caption" else ""
        return Block(text, kind, context.level if kind == "heading" else 0, joins)

    def _marked(self, text: str) -> str:
        """A note's text behind its mark; empty where the mark is all there is so far."""
        text = re.sub(r"^[\^↑\s]+", "", text)
        mark = self.pending_note
        if mark is None:
            return _OWN_MARK.sub(r"[\1] ", text, count=1)
        own = re.match(
            rf"[\[(]?\s*(?:{re.escape(mark)}|[*†‡§]+)\s*(?:[\])][.:]?|[.:]|\s|$)\s*", text
        )
        text = text[own.end() :] if own else text
        if not text:
            return ""
        self.pending_note = None
        return f"[{mark}] {text}"

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if self.is_only_alt and not text.isspace():
            self.is_only_alt = False
        self.buffer.append(text)

    def _note_mark(self, ids: list[str | None]) -> str | None:
        for name in ids:
            if name and (mark := self.marks.by_target.get(f"{self.markup.file}#{name}")):
                return mark
        return None

    def _page_label(self, element: Any, types: set[str], ids: list[str | None]) -> str | None:
        known = self.markup.page_labels or {}
        for name in ids:
            if name and name in known:
                return known[name]
        if not types & {"pagebreak", "doc-pagebreak"}:
            return None
        said = element.get("title") or element.get("aria-label") or "".join(element.itertext())
        return re.sub(r"^\s*(?:page|p\.|pg\.?)\s+|[\s.]+$", "", said, flags=re.IGNORECASE).strip()

    def _is_power(self, sup: Any) -> bool:
        """Whether a raised text is an exponent: ``10^3`` must not be read as 103."""
        text = "".join(sup.itertext()).strip()
        before = "".join(self.buffer[-2:])[-3:]
        is_link = any(local_name(child.tag) == "a" for child in sup)
        return bool(_POWER.fullmatch(text)) and not is_link and before[-1:].isalnum()


_MOST_TABLES = 8  # in each other; what is deeper only places text
_PARTING = {*HEADINGS, "pre", "table", "hr"}


def _is_stanza(element: Any, types: set[str]) -> bool:
    return bool(STANZAS & (types | set((element.get("class") or "").lower().split())))
