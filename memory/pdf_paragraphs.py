"""Rows of a PDF page to paragraphs, headings, items, tables, listings and notes."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from memory.blocks import BlockKind
from memory.pdf_columns import Row
from memory.pdf_hyphens import Spellings
from memory.pdf_tables import table_rows, table_text
from memory.pdf_words import is_rtl

_BULLET = re.compile(r"[•●▪■◦‣⁃∙○◆➢✓\ue000-\uf8ff]\s*(?=\S)|[–—*·-]\s+(?=\S)")
_NUMBERED = re.compile(r"(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{2,4})[.)]|\[\d{1,3}\])\s+(?=\S)")
_SECTION = re.compile(r"((?:\d{1,2}|[A-Z])(?:\.\d{1,3})*)\.?\s+\S")
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)|table|tab\.|figura|abb\w*\.?|tabelle|рис\.?|図|图|表)\s*\d", re.IGNORECASE
)
_NOTE = re.compile(r"(\d{1,3}|[*†‡§¶‖#]{1,3})\s*(?=\S)")
_LEADER = re.compile(r"(?:\s*[.·…]){4,}\s*|\s*…{2,}\s*")
_BROKEN_WORD = re.compile(r"[^\W\d_][-\u2010\u00ad]$")
_SENTENCE_END = re.compile(r"[.!?:;。！？；：؟۔…][\"'”’»)\]」』]*$")


@dataclass(slots=True)
class Draft:
    """A block in the making.

    Attributes:
        kind: As of ``memory.blocks.Block``.
        text: Its text.
        level: Of a heading.
        rows: Where it stands.
        goes_on: Its last line is full and ends no sentence.
        is_indented: Its first line is.
    """

    kind: BlockKind
    text: str
    rows: list[Row]
    level: int = 0
    goes_on: bool = False
    is_indented: bool = False


@dataclass(slots=True)
class Paragraphs:
    """Makes blocks of rows; learns the size of body text and the words as pages go by.

    Attributes:
        spellings: Words seen.
    """

    spellings: Spellings = field(default_factory=Spellings)
    _sizes: Counter[float] = field(default_factory=Counter)
    _body: float = 0.0
    _has_open_note: bool = False  # the last note of this page may go on overleaf
    _had_open_note: bool = False  # that of the page before

    def learn(self, rows: Sequence[tuple[str, float]]) -> None:
        """Takes note of a page to come: (text, size) of its lines."""
        for text, size in rows:
            self.spellings.learn(text)
            self._sizes[round(2 * size) / 2] += len(text)
        if self._sizes:
            self._body = self._sizes.most_common(1)[0][0]

    def drafts(self, rows: Sequence[Row]) -> list[Draft]:
        """The blocks of a page."""
        self._had_open_note, self._has_open_note = self._has_open_note, False
        found: list[Draft] = []
        start = 0
        for stop in range(1, len(rows) + 1):
            if stop == len(rows) or rows[stop].column != rows[start].column:
                for draft in self._column(rows[start:stop]):
                    self._add(found, draft)
                start = stop
        return _notes_before_open_end(found)

    def _add(self, found: list[Draft], draft: Draft) -> None:
        """Takes a block in; the first of a column may go on from the last of the column before."""
        last = next((d for d in reversed(found) if d.kind != "note"), None)
        if last and last.rows[0].column != draft.rows[0].column and goes_on(last, draft):
            last.text = self.spellings.joined(last.text, draft.text)
            last.rows, last.goes_on = draft.rows, draft.goes_on
        else:
            found.append(draft)

    def _column(self, rows: Sequence[Row]) -> list[Draft]:
        note_from = self._notes_start(rows)
        body, notes = rows[:note_from], rows[note_from:]
        pitch = _pitch(body)
        is_table = table_rows(body)
        groups: list[tuple[str, list[Row]]] = []
        for n, row in enumerate(body):
            kind = self._row_kind(row, is_table=is_table[n])
            before, last = groups[-1] if groups else ("", [])
            is_prose = before in ("text", "item")
            # A line of prose may hold code from end to end.
            fits = is_prose and (kind == "text" or (kind == "mono" and _is_full(last[-1])))
            if groups and (fits or before == kind) and not self._starts(groups[-1], row, pitch):
                last.append(row)
            else:
                groups.append(
                    ("item" if kind == "text" and _BULLET.match(row.text) else kind, [row])
                )
        drafts = [self._draft(kind, group, pitch) for kind, group in groups]
        return drafts + self._notes(notes)

    def _row_kind(self, row: Row, *, is_table: bool) -> str:
        if _LEADER.search(row.text) and any(c.isalpha() for c in row.text):
            return "leader"
        if is_table:
            return "table"
        if all(run.mono for run in row.runs):
            return "mono"
        return "text"

    def _starts(self, group: tuple[str, list[Row]], row: Row, pitch: float) -> bool:
        """Whether a row begins a new block after the rows of the group."""
        kind, rows = group
        last = rows[-1]
        step = row.base - last.base
        if kind == "leader":
            return False
        if step <= 0 or step > 4 * max(row.size, last.size):
            return True
        if kind == "table":
            return False
        if kind == "mono":
            return step > 2.2 * pitch
        is_large = min(row.size, last.size) > 1.13 * self._body
        if step > (
            1.5 * row.size if is_large else max(1.25 * pitch, 1.1 * min(row.size, last.size))
        ):
            return True
        if abs(row.size - last.size) > 0.12 * max(row.size, last.size) and len(row.text) > 3:
            return True
        if all(r.bold for r in row.runs) != all(r.bold for r in last.runs) and (
            not _is_full(last) or all(r.bold for r in last.runs)
        ):
            return True
        return self._starts_by_place(kind, rows, row)

    def _starts_by_place(self, kind: str, rows: list[Row], row: Row) -> bool:
        last = rows[-1]
        rtl = is_rtl(row.text)
        indent = (last.x1 - row.x1) if rtl else (row.x0 - last.x0)
        is_ended = bool(_SENTENCE_END.search(last.text))
        is_short = not _is_full(last)
        if _BULLET.match(row.text) and (is_short or is_ended or kind == "item"):
            return True
        if _NUMBERED.match(row.text) and (is_ended or is_short) and indent < 2 * row.size:
            return True
        if indent > 0.8 * row.size:
            if kind == "item" and len(rows) == 1:
                return False
            return len(rows) > 1 or is_short or is_ended
        if indent < -0.8 * row.size:
            return len(rows) > 1 or kind == "item"
        return is_short and is_ended

    def _draft(self, kind: str, rows: list[Row], pitch: float) -> Draft:
        if kind == "table":
            return Draft("table", table_text(rows), rows)
        if kind == "leader":
            lines = (_LEADER.sub(" … ", row.text).strip() for row in rows)
            return Draft("item", "\n".join(lines), rows)
        level = self._heading_level(rows, kind)
        if kind == "mono" and not level:
            return Draft("code", _listing(rows), rows)
        text = self._joined(rows, keep_lines=not level)
        if level:
            return Draft("heading", text, rows, level)
        if kind == "item":
            bullet = _BULLET.match(text)
            if bullet and not bullet[0][0].isascii():
                text = "• " + text[bullet.end() :]
            return self._open(Draft("item", text, rows))
        if _CAPTION.match(text):
            return Draft("caption", text, rows)
        return self._open(Draft("paragraph", text, rows))

    def _open(self, draft: Draft) -> Draft:
        first, last = draft.rows[0], draft.rows[-1]
        draft.goes_on = _is_full(last) and not _SENTENCE_END.search(draft.text)
        rtl = is_rtl(first.text)
        indent = first.right - first.x1 if rtl else first.x0 - first.left
        draft.is_indented = 0.8 * first.size < indent < 6 * first.size
        return draft

    def _joined(self, rows: Sequence[Row], *, keep_lines: bool) -> str:
        """Lines as running text; a line that ends early for no reason keeps its end."""
        text = ""
        for before, row in zip((None, *rows), rows, strict=False):
            if before is None:
                text = row.text
            elif keep_lines and not _is_full(before, next_row=row):
                text += "\n" + row.text
            else:
                text = self.spellings.joined(text, row.text)
        return text

    def _heading_level(self, rows: list[Row], kind: str) -> int:
        """1 is the highest, 0 for no heading; by its number, else by its size."""
        text = " ".join(row.text for row in rows)
        letters = sum(map(str.isalpha, text))
        if letters < 2 or len(text) > 220 or len(rows) > 4 or not self._body or kind == "item":
            return 0
        ratio = median(row.size for row in rows) / self._body
        is_bold = all(run.bold for row in rows for run in row.runs)
        is_sentence = text[-1] in ".,;:" and len(text) > 60
        if ratio < 1.13 and not (is_bold and ratio > 0.95 and len(rows) < 3 and not is_sentence):
            return 0
        if text[-1] in ",;" or (kind == "mono" and ratio < 1.13):
            return 0
        number = _SECTION.match(text)
        if number and "." in number[1]:
            return min(number[1].count(".") + 1, 6)
        return 1 if ratio >= 1.7 else 2 if ratio >= 1.35 else 3 if ratio >= 1.13 else 4

    def _notes_start(self, rows: Sequence[Row]) -> int:
        """Where the footnotes of a column begin: smaller rows at its end, the first with a mark."""
        start = len(rows)
        while start and rows[start - 1].size <= 0.92 * self._body:
            start -= 1
        for n in range(start, len(rows)):
            is_apart = n > 0 and rows[n].base - rows[n - 1].base > 1.3 * rows[n].size
            if is_apart and (self._had_open_note or _NOTE.match(rows[n].text)):
                return n
        return len(rows)

    def _notes(self, rows: Sequence[Row]) -> list[Draft]:
        notes: list[Draft] = []
        for row in rows:
            mark = _NOTE.match(row.text)
            if mark and (not notes or _is_next_mark(notes[-1].text, mark[1], row, rows)):
                notes.append(Draft("note", f"[{mark[1]}] {row.text[mark.end() :]}", [row]))
            elif notes:
                note = notes[-1]
                note.text = self.spellings.joined(note.text, row.text)
                note.rows.append(row)
            else:
                notes.append(Draft("note", row.text, [row]))  # the rest of one overleaf
        if rows:
            self._has_open_note = bool(notes and not _SENTENCE_END.search(notes[-1].text))
        return notes


def goes_on(last: Draft, first: Draft) -> bool:
    """Whether a block at the top of a column or page is the rest of the one before."""
    if last.kind not in ("paragraph", "item") or first.kind != "paragraph":
        return False
    if abs(last.rows[-1].size - first.rows[0].size) > 0.1 * last.rows[-1].size:
        return False
    opening = next((c for c in first.text if c.isalnum()), "")
    if opening.islower() and not _SENTENCE_END.search(last.text):
        return True
    return last.goes_on and not first.is_indented


def _notes_before_open_end(drafts: list[Draft]) -> list[Draft]:
    """Puts footnotes before a last paragraph that goes on overleaf, so that it stays whole."""
    end = len(drafts)
    while end and drafts[end - 1].kind == "note":
        end -= 1
    if 0 < end < len(drafts) and drafts[end - 1].goes_on:
        return [*drafts[: end - 1], *drafts[end:], drafts[end - 1]]
    return drafts


def _is_next_mark(note: str, mark: str, row: Row, rows: Sequence[Row]) -> bool:
    """Whether a number at a line's start is the mark of another note, not a part of this one."""
    before = note[1:].partition("]")[0] if note.startswith("[") else ""
    if mark.isdecimal() and before.isdecimal():
        return int(mark) == int(before) + 1
    return not mark.isdecimal() or row.x0 <= min(r.x0 for r in rows) + row.size


def _is_full(row: Row, next_row: Row | None = None) -> bool:
    """Whether a line reaches the column's end, or the next line's first word had no room."""
    if _BROKEN_WORD.search(row.text):
        return True
    rtl = is_rtl(row.text)
    room = row.x0 - row.left if rtl else row.right - row.x1
    width = row.right - row.left
    if room < 0.02 * width + 0.5 * row.size:
        return True
    if next_row is None:
        return room < 0.12 * width
    text = next_row.text
    first = text.split(" ", 1)[0]
    word = len(first) / max(len(text), 1) * (next_row.x1 - next_row.x0)
    return room < min(word + 0.4 * row.size, 0.5 * width)


def _pitch(rows: Sequence[Row]) -> float:
    """The usual step from line to line in a column."""
    steps = [
        below.base - above.base
        for above, below in pairwise(rows)
        if 0.6 * above.size < below.base - above.base < 2.2 * above.size
    ]
    if not steps:
        return 1.3 * median(row.size for row in rows) if rows else 0.0
    steps.sort()
    return steps[(len(steps) - 1) // 3]  # below the middle: gaps between paragraphs are many too


def _listing(rows: Sequence[Row]) -> str:
    """Lines of code with the room before and between their parts."""
    widths = [(run.x1 - run.x0) / len(run.text) for row in rows for run in row.runs if run.text]
    width = max(median(widths), 0.5)
    left = min(row.x0 for row in rows)
    lines = []
    for row in rows:
        line = ""
        for run in sorted(row.runs, key=lambda r: r.x0):
            column = min(round((run.x0 - left) / width), 400)
            line = line.ljust(max(column, len(line) + bool(line))) + run.text
        lines.append(line)
    return "\n".join(lines)
