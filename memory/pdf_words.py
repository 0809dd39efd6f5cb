"""Where the words of a PDF page stand: runs of words on one line, in upright coordinates."""

import re
import unicodedata
from collections import Counter
from ctypes import byref, c_double, c_int, c_ushort, create_string_buffer
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

WIDE_GAP = 0.95  # of the letters' height: wider than a space in justified text, mostly

_MONO = re.compile(rb"mono|courier|typewriter|cmtt|sltt|consol|code|fixed", re.IGNORECASE)
_BOLD = re.compile(rb"bold|black|heavy|demi|cmbx|-bd|medi", re.IGNORECASE)
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_SPACELESS = (
    "\u2e80-\u2fdf\u3000-\u30ff\u31f0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffee"
    "\U00020000-\U0003ffff"
)
_CJK_WORD = re.compile(f"[{_SPACELESS}\ufe10-\ufe1f]+")
_BETWEEN_CJK = re.compile(f"(?<=[{_SPACELESS}]) (?=[{_SPACELESS}])")

# Ligatures, shaped Arabic letters, radicals and vertical punctuation: the letters that they mean.
_PRESENTED = re.compile("[\ufb00-\ufdff\ufe10-\ufe19\ufe30-\ufe44\ufe70-\ufefc\u2e80-\u2fdf]+")
_LINE_END = re.compile("[\r\n]+|[\ufffe\x02]")  # the latter two: a hyphen at a line's end
_WORD = re.compile("[^\\s\u064b-\u0652]\\S*")
_UNMAPPED = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")


@dataclass(slots=True)
class Run:
    """Words that stand beside each other on one line, no wide gap between them.

    Attributes:
        text: In logical order; ends in a hyphen where the line breaks a word.
        x0, x1, top, bottom: In points from the top left of the page turned so that text runs
            across (vertical text too: its columns are rows from the top here).
        base: Where the letters stand.
        size: Height of the letters' boxes.
        turn: Quarter turns clockwise that made it upright.
        mono: Fixed-width letters.
        bold: Heavy letters.
    """

    text: str
    x0: float
    x1: float
    top: float
    bottom: float
    base: float
    size: float
    turn: int = 0
    mono: bool = False
    bold: bool = False


@dataclass(slots=True)
class _Word:
    start: int
    text: str
    box: tuple[float, float, float, float] = (0, 0, 0, 0)
    base: tuple[float, float] = (0, 0)
    move: tuple[float, float] = (0, 0)


@dataclass(slots=True)
class PageWords:
    """The runs of a page, in the file's own order, and what is odd about them.

    Attributes:
        runs: Those of the page's main direction first.
        width, height: Of the page as it is shown, in points.
        unmapped: Share of characters for which the file names no letter.
        printed: The page number found in its header or footer.
    """

    runs: list[Run]
    width: float
    height: float
    unmapped: float = 0.0
    printed: str = ""


def page_words(page: Any) -> PageWords:
    """The words of a ``pypdfium2.PdfPage``, in runs."""
    import pypdfium2.raw as pdfium

    width, height = page.get_size()
    frame = _frame(page, pdfium)
    textpage = page.get_textpage()
    try:
        count = max(pdfium.FPDFText_CountChars(textpage), 0)
        buffer = (c_ushort * (count * 2 + 2))()
        written = pdfium.FPDFText_GetText(textpage, 0, count, buffer)
        text = bytes(buffer)[: 2 * max(written - 1, 0)].decode("utf-16-le", "replace")
        found = PageWords([], width, height)
        if text:
            _read_lines(textpage, text, is_same=len(text) == count, frame=frame, into=found)
            found.unmapped = _unmapped(textpage, text, pdfium)
            if found.runs and _is_invisible(textpage, len(text), pdfium):
                even(found.runs)  # a layer that OCR laid over a scan
        return found
    finally:
        textpage.close()


def even(runs: list[Run]) -> None:
    """Gives lines that OCR measured the usual size, where theirs is near it.

    The height of such a box depends on which letters are in it.
    """
    usual = median(run.size for run in runs)
    for run in runs:
        if abs(run.size - usual) < 0.45 * usual:
            run.size = usual


def plain(text: str) -> str:
    """Ligatures and shaped letters taken apart into the letters that they stand for."""
    if text.isascii():
        return text
    return _PRESENTED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def is_rtl(text: str) -> bool:
    """Whether most of its letters belong to a script that runs from right to left."""
    if text.isascii():
        return False
    return 2 * len(_RTL.findall(text)) > sum(map(str.isalpha, text))


def joint(before: str, after: str) -> str:
    """What stands between two pieces of a sentence: a space, nothing in Chinese or Japanese."""
    if before and after and _CJK_WORD.match(before[-1]) and _CJK_WORD.match(after[0]):
        return ""
    return " "


def _frame(page: Any, pdfium: Any) -> tuple[float, float, float, float, int]:
    """The shown part of the page and its quarter turns."""
    left, bottom, right, top = page.get_bbox()
    return left, bottom, right, top, pdfium.FPDFPage_GetRotation(page) % 4


def _unmapped(textpage: Any, text: str, pdfium: Any) -> float:
    """Share of unmapped characters, told from a sample of at most 200."""
    step = max(1, len(text) // 200)
    sample = range(0, len(text), step)
    letters = [i for i in sample if not text[i].isspace() and text[i] not in "\ufffe\x02"]
    bad = sum(
        bool(_UNMAPPED.match(text[i])) or pdfium.FPDFText_HasUnicodeMapError(textpage, i) == 1
        for i in letters
    )
    return bad / len(letters) if letters else 0.0


def _is_invisible(textpage: Any, count: int, pdfium: Any) -> bool:
    """Whether the text is written without being shown, told from a few characters."""
    modes = []
    for index in range(0, count, max(1, count // 8)):
        drawn = pdfium.FPDFText_GetTextObject(textpage, index)
        if drawn:
            modes.append(pdfium.FPDFTextObj_GetTextRenderMode(drawn))
    return bool(modes) and all(mode == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE for mode in modes)


def _read_lines(
    textpage: Any, text: str, *, is_same: bool, frame: tuple[float, ...], into: PageWords
) -> None:
    """Cuts the text into pdfium's lines, these into words, and sees where each word stands."""
    import pypdfium2.raw as pdfium

    box_of, origin_of = pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_GetCharOrigin
    index_of = pdfium.FPDFText_GetCharIndexFromTextIndex
    font_of, font_name = pdfium.FPDFText_GetFontInfo, create_string_buffer(128)
    first, last, x, y, flags = pdfium.FS_RECTF(), pdfium.FS_RECTF(), c_double(), c_double(), c_int()
    lines: list[tuple[list[_Word], bool, bool, bool]] = []
    for start, line, breaks in _lines(text):
        words = []
        for at, word in _words(line, start):
            i, j = at, at + len(word) - 1
            if not is_same:
                i, j = index_of(textpage, i), index_of(textpage, j)
                if i < 0 or j < 0:
                    i = j = max(i, j)
                    if i < 0:
                        continue
            box_of(textpage, i, byref(first))
            origin_of(textpage, i, byref(x), byref(y))
            found = _Word(i, word, base=(x.value, y.value))
            if i == j:
                found.box = (first.left, first.bottom, first.right, first.top)
            else:
                box_of(textpage, j, byref(last))
                found.box = (
                    min(first.left, last.left),
                    min(first.bottom, last.bottom),
                    max(first.right, last.right),
                    max(first.top, last.top),
                )
                found.move = (
                    last.left + last.right - first.left - first.right,
                    last.top + last.bottom - first.top - first.bottom,
                )
            words.append(found)
        if words:
            font_of(textpage, words[0].start, font_name, 128, byref(flags))
            name = font_name.value
            is_mono = bool(_MONO.search(name)) and not _CJK_WORD.search(line)
            is_bold = bool(_BOLD.search(name))
            if len(words) > 1 and (is_mono or is_bold):  # not only its first word
                font_of(textpage, words[-1].start, font_name, 128, byref(flags))
                is_mono = is_mono and bool(_MONO.search(font_name.value))
                is_bold = is_bold and bool(_BOLD.search(font_name.value))
            lines.append((words, breaks, is_mono, is_bold))
    turns = [_turn(words, lines, n) for n, (words, *_) in enumerate(lines)]
    weights: Counter[int] = Counter()
    for turn, (words, *_) in zip(turns, lines, strict=True):
        weights[turn] += sum(len(word.text) for word in words)
    main = weights.most_common(1)[0][0] if weights else 0
    for turn, (words, breaks, is_mono, is_bold) in zip(turns, lines, strict=True):
        # A lone character has no direction of its own.
        total = (main if turn < 0 else turn) + int(frame[4])
        runs = _runs(words, total % 4, frame)
        for run in runs:
            run.mono, run.bold = is_mono, is_bold
        if breaks:  # the hyphen at a line's end, which pdfium takes out
            runs[-1].text += "-"
        into.runs.extend(runs)
    upright = (max(main, 0) + int(frame[4])) % 4
    into.runs.sort(key=lambda run: run.turn != upright)
    if upright % 2 != int(frame[4]) % 2:
        into.width, into.height = into.height, into.width


def _lines(text: str) -> list[tuple[int, str, bool]]:
    """Lines as pdfium tells them: (start, text, whether it ends in a hyphen)."""
    found = []
    start = 0
    for broken in _LINE_END.finditer(text + "\n"):
        line = text[start : broken.start()]
        is_hyphen = broken[0] in "\ufffe\x02"
        if line.strip() or is_hyphen:
            found.append((start, line, is_hyphen))
        start = broken.end()
    return found


def _words(line: str, start: int) -> list[tuple[int, str]]:
    """(place, word); marks that stand before their letter or alone would break the word apart."""
    return [(start + found.start(), found[0]) for found in _WORD.finditer(line)]


def _turn(words: list[_Word], lines: list[tuple[list[_Word], bool, bool, bool]], n: int) -> int:
    """Quarter turns that make a line upright; -1 where it does not say."""
    longest = max(words, key=lambda word: len(word.text))
    across, up = longest.move
    if len(longest.text) < 4 and len(words) == 1 and _CJK_WORD.match(longest.text):
        turn = _turn_of_single(longest, lines, n)
        return 0 if turn < 0 and abs(across) > abs(up) else turn
    if len(longest.text) < 2 or across == 0 == up:
        return -1
    if abs(up) > 2 * abs(across):
        return 1 if up > 0 else 3
    if across < 0 and len(words) == 1 and not is_rtl(longest.text) and len(longest.text) > 3:
        return 2
    return 0


def _turn_of_single(word: _Word, lines: list[tuple[list[_Word], bool, bool, bool]], n: int) -> int:
    """Vertical Japanese comes as a line a character: 3 where a neighbour stands just below it."""
    left, bottom, right, top = word.box
    height = max(top - bottom, 1.0)
    for other in (n + 1, n - 1):
        if not 0 <= other < len(lines) or len(lines[other][0]) > 1:
            continue
        near = lines[other][0][0]
        aside = abs(near.box[0] + near.box[2] - left - right) / 2
        down = abs(near.box[3] + near.box[1] - top - bottom) / 2
        if len(near.text) < 4 and aside < 0.7 * height and 0.3 * height < down < 2 * height:
            return 3
    return -1


def _runs(words: list[_Word], turn: int, frame: tuple[float, ...]) -> list[Run]:
    """Cuts a line of words where the gap between two is wide."""
    left, bottom, right, top, _ = frame
    placed = []
    for word in words:
        x0, y0, x1, y1 = word.box
        bx, by = word.base
        if turn == 0:
            place = (x0 - left, x1 - left, top - y1, top - y0, top - by)
        elif turn == 1:
            place = (y0 - bottom, y1 - bottom, x0 - left, x1 - left, bx - left)
        elif turn == 2:
            place = (right - x1, right - x0, y0 - bottom, y1 - bottom, by - bottom)
        else:
            place = (top - y1, top - y0, right - x1, right - x0, right - x0)
        placed.append((*place, plain(word.text)))
    runs: list[Run] = []
    for part in _cut(placed):
        sizes = sorted(p[3] - p[2] for p in part)
        bases = sorted(p[4] for p in part)
        text = " ".join(p[5] for p in part)
        if not text.isascii():
            text = _BETWEEN_CJK.sub("", text)
        runs.append(
            Run(
                text,
                min(p[0] for p in part),
                max(p[1] for p in part),
                min(p[2] for p in part),
                max(p[3] for p in part),
                bases[len(bases) // 2],
                max(sizes[len(sizes) // 2], 0.5),
                turn,
            )
        )
    return runs


_Placed = tuple[float, float, float, float, float, str]


def _cut(placed: list[_Placed]) -> list[list[_Placed]]:
    """Parts between wide gaps, each in its own (logical) order, the parts in the line's."""
    by_place = sorted(range(len(placed)), key=lambda i: placed[i][0])
    groups: list[set[int]] = [{by_place[0]}]
    reach = placed[by_place[0]][1]
    for before, i in pairwise(by_place):
        height = max(placed[i][3] - placed[i][2], placed[before][3] - placed[before][2])
        level = abs(placed[i][4] - placed[before][4])
        if placed[i][0] - reach > WIDE_GAP * height or level > 0.6 * height:
            groups.append(set())
        groups[-1].add(i)
        reach = max(reach, placed[i][1])
    groups.sort(key=min)
    return [[placed[i] for i in sorted(group)] for group in groups]
