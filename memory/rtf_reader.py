"""RTF as blocks: groups, code pages, headings, tables and notes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from memory.blocks import Block, BlockKind
from memory.characters import clean
from memory.errors import UnreadableDocument
from memory.rtf_words import (
    CHARACTERS,
    IGNORABLE_WITH_TEXT,
    SKIPPED,
    SYMBOLS,
    TOKEN,
    charset_encoding,
    codepage_encoding,
)

_MOST_GROUPS = 10_000  # open at a time
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|заголовок|título|標題|标题|見出し) ?(\d)", re.I
)


@dataclass(frozen=True, slots=True)
class _State:
    """What holds inside a group."""

    destination: Literal["text", "skip", "fonts", "styles", "title", "note", "label"] = "text"
    font: int = -1
    fallback_chars: int = 1  # that follow a Unicode character, for readers without Unicode
    is_hidden: bool = False


class RtfReader:
    """Reads one file; ``title`` is known once ``blocks`` is through.

    Args:
        data: Its bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.title = ""
        self._data = data
        self._state = _State()
        self._groups: list[tuple[_State, list[str]]] = []
        self._encoding = "cp1252"
        self._default_font = -1
        self._fonts: dict[int, str] = {}
        self._levels: dict[int, int] = {}  # heading level of styles
        self._style_level = 0
        self._bytes = bytearray()  # text whose code page is that of the state
        self._out: list[str] = []
        self._to_skip = 0  # fallback characters
        self._level = 0
        self._label = ""
        self._is_in_table = False
        self._cells: list[str] = []
        self._rows: list[str] = []
        self._notes: list[Block] = []
        self._num_notes = 0

    def blocks(self) -> Iterator[Block]:
        """Paragraphs, headings, items, tables and notes.

        Raises:
            UnreadableDocument: it opens more groups than any text does.
        """
        position, is_ignorable = 0, False
        while match := TOKEN.match(self._data, position):
            position = match.end()
            kind = match.lastgroup
            if kind == "number":
                kind = "word"
            if kind == "text":
                self._text(match.group("text"))
            elif kind == "hex":
                self._text(bytes.fromhex(match.group("hex").decode()))
            elif kind == "brace":
                yield from self._brace(match.group("brace"))
            elif kind == "symbol":
                is_ignorable = match.group("symbol") == b"*"
                if not is_ignorable:
                    yield from self._symbol(match.group("symbol"))
                continue
            elif kind == "word":
                word = match.group("word").decode()
                number = int(match.group("number") or b"1")
                if word == "bin":
                    position += max(number, 0)
                yield from self._word(word, number, is_ignorable=is_ignorable)
            is_ignorable = False
        yield from self._paragraph()
        yield from self._table()

    def _brace(self, brace: bytes) -> Iterator[Block]:
        self._decode()
        self._to_skip = 0
        if brace == b"{":
            if len(self._groups) >= _MOST_GROUPS:
                raise UnreadableDocument(
                    f"the RTF opens more than {_MOST_GROUPS:,} groups in each other; it is damaged"
                )
            self._groups.append((self._state, self._out))
            return
        if not self._groups:
            return
        ended, text = self._state, "".join(self._out)
        self._state, outer = self._groups.pop()
        if self._out is outer:
            return
        self._out = outer
        if ended.destination == "title":
            self.title = " ".join(clean(text).split())
        elif ended.destination == "note":
            self._num_notes += 1
            outer.append(f"[{self._num_notes}]")
            self._notes.append(Block(f"[{self._num_notes}] {clean(text).strip()}", "note"))
        elif ended.destination == "label":
            self._label = text
        elif ended.destination == "styles" and (found := _HEADING.match(text.strip())):
            self._levels[self._style_level] = int(found.group(1))
        yield from ()

    def _symbol(self, symbol: bytes) -> Iterator[Block]:
        if symbol in (b"\n", b"\r"):
            yield from self._word("par", 1, is_ignorable=False)
        elif symbol in SYMBOLS:
            self._character(SYMBOLS[symbol])

    def _word(self, word: str, number: int, *, is_ignorable: bool) -> Iterator[Block]:
        state = self._state
        if word in SKIPPED or (is_ignorable and word not in IGNORABLE_WITH_TEXT):
            self._decode()
            self._state = replace(state, destination="skip")
        elif word == "u":
            self._decode()
            self._to_skip = 0
            self._character(chr(number % 65536))
            self._to_skip = state.fallback_chars
        elif word in CHARACTERS:
            self._character(CHARACTERS[word])
        elif word in ("par", "sect", "page"):
            yield from self._end_of_paragraph()
        elif word == "line":
            self._character("\n")
        elif word in ("cell", "row"):
            self._end_of_cell(is_row=word == "row")
        else:
            self._set(word, number)

    def _set(self, word: str, number: int) -> None:
        """A word that changes what follows."""
        self._decode()
        state = self._state
        if word == "ansicpg":
            self._encoding = codepage_encoding(number)
        elif word in ("mac", "pc", "pca"):
            self._encoding = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "deff":
            self._default_font = number
            self._state = replace(state, font=number)
        elif word == "f":
            self._state = replace(state, font=number)
        elif word == "fcharset" and state.destination == "fonts":
            self._fonts[state.font] = charset_encoding(number)
        elif word == "cpg" and state.destination == "fonts":
            self._fonts[state.font] = codepage_encoding(number)
        elif word == "uc":
            self._state = replace(state, fallback_chars=max(number, 0))
        elif word in ("v", "deleted"):
            self._state = replace(state, is_hidden=number != 0)
        elif word == "plain":
            self._state = replace(state, font=self._default_font, is_hidden=False)
        elif word in _DESTINATIONS:
            if state.destination != "skip":
                self._state = replace(state, destination=_DESTINATIONS[word])
                self._out = []
        elif state.destination == "styles":
            self._learn_style(word, number)
        elif word == "pard":
            self._level, self._is_in_table = 0, False
        elif word == "outlinelevel":
            self._level = number + 1 if number < 9 else 0
        elif word == "s" and not self._level:
            self._level = self._levels.get(number, 0)
        elif word == "intbl":
            self._is_in_table = True

    def _learn_style(self, word: str, number: int) -> None:
        if word == "s":
            self._style_level = number
            self._out = []
        elif word == "outlinelevel" and number < 9:
            self._levels[self._style_level] = number + 1

    def _text(self, data: bytes) -> None:
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
        if self._state.destination not in ("skip", "fonts") and not self._state.is_hidden:
            self._bytes += data

    def _decode(self) -> None:
        """The bytes so far, by the code page of their font."""
        if self._bytes:
            encoding = self._fonts.get(self._state.font) or self._encoding
            self._out.append(bytes(self._bytes).decode(encoding, errors="replace"))
            self._bytes.clear()

    def _character(self, text: str) -> None:
        self._decode()
        if self._to_skip:
            self._to_skip -= 1
        elif self._state.destination not in ("skip", "fonts") and not self._state.is_hidden:
            self._out.append(text)

    def _end_of_paragraph(self) -> Iterator[Block]:
        self._decode()
        if self._state.destination in ("note", "label", "title"):
            self._out.append("\n")
        elif self._state.destination == "text":
            yield from self._paragraph()

    def _paragraph(self) -> Iterator[Block]:
        """What was written since the last one."""
        self._decode()
        if self._is_in_table:
            self._out.append(" ")
            return
        text, label = self._taken()
        if text:
            yield from self._table()
            kind: BlockKind = "heading" if self._level else "item" if label else "paragraph"
            yield Block(f"{label}{text}", kind, self._level)
        if not self._rows:
            yield from self._notes
            self._notes.clear()

    def _end_of_cell(self, *, is_row: bool) -> None:
        self._decode()
        if self._state.destination != "text":
            return
        if not is_row:
            text, label = self._taken()
            self._cells.append(f"{label}{text}".replace("\n", " "))
        elif self._cells:
            if any(self._cells):
                self._rows.append(" | ".join(self._cells).rstrip())
            self._cells = []

    def _table(self) -> Iterator[Block]:
        if self._rows:
            yield Block("\n".join(self._rows), "table")
            self._rows = []
            yield from self._notes
            self._notes.clear()

    def _taken(self) -> tuple[str, str]:
        """Text and label since the last paragraph, which are then forgotten."""
        text = "".join(self._out)
        # Characters beyond the first plane are written as two halves.
        text = text.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
        self._out.clear()
        label, self._label = " ".join(clean(self._label).split()), ""
        label = "- " if label and not any(map(str.isalnum, label)) else f"{label} " if label else ""
        return re.sub(r"[ \t]+", " ", clean(text)).strip(), label


_DESTINATIONS: dict[str, Literal["fonts", "styles", "title", "note", "label"]] = {
    "fonttbl": "fonts",
    "stylesheet": "styles",
    "title": "title",
    "footnote": "note",
    "listtext": "label",
    "pntext": "label",
}
