"""One page of a PDF: its own text, or what OCR reads where it is a picture."""

import re
from dataclasses import dataclass
from typing import Any

from memory.document import PageSource, Problem
from memory.ocr import MAX_SIDE, Ocr, OcrLine, confidence, runs
from memory.pdf_picture import draw, picture_share
from memory.pdf_words import PageWords, Run, page_words

LOST = "nothing is left on it that can be read; the file is damaged"
LOST_REMEDY = "get the file anew"
_ENOUGH_LETTERS = 150  # a page with as many is not looked at as a picture
_MAX_UNMAPPED = 0.3
_MIN_LETTERS_SHARE = 0.3  # of what is written; less is no language
_MIN_PICTURE = 0.75  # of a page with a few words; a smaller picture is an illustration
_SOME_PICTURE = 0.05  # of the page: more than an ornament
_UNSURE, _DOUBTFUL = 0.6, 0.78  # below: not taken; taken, and said
_LEADING = re.compile(r"[\s._·…|=*-]+")  # between columns of a table or list: no sign of garbage
_LETTER = re.compile(r"[^\W_]")


@dataclass(slots=True)
class PageText:
    """What was read of a page.

    Attributes:
        words: Its runs.
        label: The printed page number that the file gives.
        source: How the text was had.
        problem: What could not be read.
    """

    words: PageWords
    label: str = ""
    source: PageSource = "text"
    problem: Problem | None = None


def read_page(document: Any, index: int, ocr: Ocr | None, *, is_damaged: bool) -> PageText:
    """Reads one page; what fails is told in its problem.

    Args:
        document: A ``pypdfium2.PdfDocument``.
        index: Of the page, from 0.
        ocr: Reads pictures; None where they are not to be read.
        is_damaged: The file is, so a page with nothing on it is one that was lost.
    """
    import pypdfium2

    try:
        label = document.get_page_label(index).strip()
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        label = ""
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        problem = Problem("it is damaged or missing in the file", "get the file anew", index)
        return PageText(PageWords([], 0, 0), label, "unread", problem)
    try:
        text = PageText(page_words(page), label)
        written = "".join(run.text for run in text.words.runs)
        letters = len(_LETTER.findall(written))
        marks = len(_LEADING.sub("", written))
        is_garbage = text.words.unmapped > _MAX_UNMAPPED or (
            letters < _ENOUGH_LETTERS and letters < _MIN_LETTERS_SHARE * marks
        )
        if letters < _ENOUGH_LETTERS or is_garbage:
            _look_at(page, text, index, ocr, letters=letters, is_garbage=is_garbage)
        if is_damaged and text.source == "blank":
            _unread(text, LOST, LOST_REMEDY, index)
        return text
    except pypdfium2.PdfiumError:
        problem = Problem("its text cannot be taken out of the file", "get the file anew", index)
        return PageText(PageWords([], 0, 0), label, "unread", problem)
    finally:
        page.close()


def _look_at(
    page: Any, text: PageText, index: int, ocr: Ocr | None, *, letters: int, is_garbage: bool
) -> None:
    """Reads a page as a picture, where that may give more than its text; changes ``text``."""
    share, is_drawn = picture_share(page)
    if not is_drawn or (letters and not is_garbage and share < _MIN_PICTURE):
        if not text.words.runs:
            text.source = "blank"
        return
    if ocr is None:
        if share >= _SOME_PICTURE or is_garbage:
            _unread(text, "a picture, and reading pictures is switched off", "switch OCR on", index)
        elif not letters:
            text.source = "blank"
        return
    image, scale = draw(page, max_side=MAX_SIDE)
    if not letters and not is_garbage and int(image.max()) - int(image.min()) < 12:
        text.source = "blank"
        return
    lines, turn = ocr.upright_lines(image)
    sure = confidence(lines)
    read = sum(len(_LETTER.findall(line.text)) for line in lines)
    if read and sure >= _UNSURE and (is_garbage or read > 1.5 * letters + 20 or not letters):
        _take(text, lines, turn, scale=scale)
        if sure < _DOUBTFUL:
            text.problem = Problem(
                f"read from a picture with doubt (sure to {sure:.0%})", "compare the page", index
            )
    elif is_garbage and text.words.unmapped > _MAX_UNMAPPED:
        what = "its fonts do not say which letters they show, and nothing was read from its picture"
        _unread(text, what, "print it to a new PDF file or get another edition", index)
    elif not letters and share >= _SOME_PICTURE:
        what = "a picture in which no text was recognised"
        remedy = "look at the page; if there is text on it, scan it anew at 300 dots an inch"
        _unread(text, what, remedy, index)
    elif not letters and not text.words.runs:
        text.source = "blank"


def _take(text: PageText, lines: list[OcrLine], turn: int, *, scale: float) -> None:
    """Puts what OCR read in the place of the page's text."""
    found: list[Run] = runs(lines, scale=scale)
    width, height = text.words.width, text.words.height
    if turn % 2:
        width, height = height, width
    text.words = PageWords(found, width, height)
    text.source = "ocr"


def _unread(text: PageText, what: str, remedy: str, index: int) -> None:
    text.words = PageWords([], text.words.width, text.words.height)
    text.source = "unread"
    text.problem = Problem(what, remedy, index)
