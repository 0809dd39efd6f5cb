"""Where a quote stands on a page of a PDF, to draw a highlight, and the page as a picture."""

import io
import unicodedata
from ctypes import byref, c_ushort
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.pdf_file import open_pdf
from memory.pdf_picture import draw
from memory.pdf_words import plain


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points (1/72 inch) from the top left of the page as it is shown."""

    left: float
    top: float
    right: float
    bottom: float


def boxes(
    path: Path,
    page_index: int,
    quote: str,
    *,
    occurrence: int = 0,
    password: str | None = None,
) -> list[Box]:
    """The lines that a quote covers on a page, one box each, in reading order.

    Letters and digits are compared, not spaces, hyphens, ligatures or case. Where the quote goes
    on overleaf (or began on the page before), its part on this page is boxed. The order in which
    the file holds its letters counts: a quote over a table or two columns may be found in part.

    Args:
        path: The file.
        page_index: Physical index from 0.
        quote: From the document's text.
        occurrence: How often the same words stand on the page before it, see ``occurrence_of``.
        password: Of an encrypted file.

    Returns:
        Nothing where the quote is not found, or the page was read by OCR.

    Raises:
        DocumentError: the file cannot be opened.
        IndexError: it has no such page.
    """
    document, _ = open_pdf(path, password)
    try:
        page = _page(document, page_index)
        textpage = page.get_textpage()
        try:
            letters, places = _letters(textpage)
            bare = _bare(quote)
            at = _find(bare, letters, occurrence)
            if not bare:
                return []
            if at >= 0:
                start, end = at, at + len(bare)
            else:
                around = [_letters_of(document, page_index + step) for step in (-1, 1)]
                start, end = _find_part(bare, letters, *around)
            return _lines(page, textpage, places[start:end])
        finally:
            textpage.close()
            page.close()
    finally:
        document.close()


def occurrence_of(quote: str, before: str) -> int:
    """How often a quote's letters stand in the text of its page that comes before it."""
    wanted, text = _bare(quote), _bare(before)
    if not wanted:
        return 0
    text += wanted
    count, at = 0, text.find(wanted)
    while at < len(text) - len(wanted):
        count, at = count + 1, text.find(wanted, at + 1)
    return count


def page_size(path: Path, page_index: int, *, password: str | None = None) -> tuple[float, float]:
    """Width and height in points of a page as it is shown.

    Raises:
        DocumentError: the file cannot be opened.
        IndexError: it has no such page.
    """
    document, _ = open_pdf(path, password)
    try:
        page = _page(document, page_index)
        try:
            width, height = page.get_size()
            return float(width), float(height)
        finally:
            page.close()
    finally:
        document.close()


def render(
    path: Path, page_index: int, *, scale: float = 2.0, password: str | None = None
) -> bytes:
    """A page as PNG.

    Args:
        path: The file.
        page_index: Physical index from 0.
        scale: Pixels a point; lowered where the picture would be longer than 2,500 pixels or
            hold more than 8 million.
        password: Of an encrypted file.

    Raises:
        DocumentError: the file cannot be opened.
        IndexError: it has no such page.
        ValueError: scale is not above 0.
    """
    from PIL import Image

    if not scale > 0:
        raise ValueError(f"scale must be above 0; got {scale}")
    document, _ = open_pdf(path, password)
    try:
        page = _page(document, page_index)
        try:
            image, _ = draw(page, scale=scale)
        finally:
            page.close()
    finally:
        document.close()
    held = io.BytesIO()
    Image.fromarray(image[:, :, ::-1] if image.ndim == 3 else image).save(held, "PNG")
    return held.getvalue()


def _page(document: Any, page_index: int) -> Any:
    if not 0 <= page_index < len(document):
        raise IndexError(f"page {page_index} is asked for and there are {len(document)}, from 0")
    return document[page_index]


def _bare(text: str) -> str:
    """Letters and digits only, in one case, ligatures taken apart."""
    folded = unicodedata.normalize("NFKD", plain(text)).casefold()
    return "".join(c for c in folded if c.isalnum())


def _letters(textpage: Any) -> tuple[str, list[int]]:
    """The letters of a page, and for each the number of its character."""
    import pypdfium2.raw as pdfium

    count = max(pdfium.FPDFText_CountChars(textpage), 0)
    buffer = (c_ushort * (2 * count + 2))()
    written = pdfium.FPDFText_GetText(textpage, 0, count, buffer)
    text = bytes(buffer)[: 2 * max(written - 1, 0)].decode("utf-16-le", "replace")
    is_same = len(text) == count
    letters: list[str] = []
    places: list[int] = []
    for number, character in enumerate(text):
        bare = _bare(character)
        if bare:
            index = (
                number if is_same else pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, number)
            )
            letters.append(bare)
            places.extend([index] * len(bare))
    return "".join(letters), places


def _letters_of(document: Any, page_index: int) -> str:
    """The letters of a page; none where there is no such page."""
    if not 0 <= page_index < len(document):
        return ""
    page = document[page_index]
    textpage = page.get_textpage()
    try:
        return _letters(textpage)[0]
    finally:
        textpage.close()
        page.close()


def _find(quote: str, page: str, occurrence: int) -> int:
    """Where a quote begins on a page that may hold it several times; -1 where it is not."""
    at = page.find(quote) if quote else -1
    for _ in range(occurrence):
        further = page.find(quote, at + 1)
        if further < 0:
            break
        at = further
    return at


def _find_part(quote: str, page: str, before: str, after: str) -> tuple[int, int]:
    """Where the part of a quote stands that is on this page.

    Args:
        quote: Its letters.
        page: Those of the page.
        before: Those of the page before, which may hold the quote's beginning.
        after: Those of the next page, which may hold its end.
    """
    overleaf = len(quote) - _longest(quote, after, is_start=False)
    if 0 < overleaf < len(quote) and quote[:overleaf] in page:
        at = page.rfind(quote[:overleaf])
        return at, at + overleaf
    begun = len(quote) - _longest(quote, page, is_start=False)
    if 0 < begun < len(quote) and quote[:begun] in before:
        at = page.find(quote[begun:])
        return at, at + len(quote) - begun
    # Something stands in its midst here (a note, a figure): the longer of its two ends.
    head = _longest(quote, page, is_start=True)
    tail = _longest(quote, page, is_start=False)
    if 2 * max(head, tail) < len(quote):
        return 0, 0
    at = page.find(quote[:head]) if head >= tail else page.find(quote[-tail:])
    return at, at + max(head, tail)


def _longest(quote: str, page: str, *, is_start: bool) -> int:
    """Length of the quote's longest start (or end) that the page holds."""
    low, high = 0, len(quote)
    while low < high:
        middle = (low + high + 1) // 2
        if (quote[:middle] if is_start else quote[-middle:]) in page:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(page: Any, textpage: Any, places: list[int]) -> list[Box]:
    """Boxes of characters, joined while they stand on one line."""
    import pypdfium2.raw as pdfium

    left, bottom, right, top = page.get_bbox()
    turn = pdfium.FPDFPage_GetRotation(page) % 4
    found: list[Box] = []  # with heights counted from the bottom, as the file has them
    corner = pdfium.FS_RECTF()
    for place in dict.fromkeys(places):
        if place < 0 or not pdfium.FPDFText_GetLooseCharBox(textpage, place, byref(corner)):
            continue
        box = Box(corner.left, corner.bottom, corner.right, corner.top)
        last = found[-1] if found else None
        if last and _is_beside(last, box):
            found[-1] = Box(
                min(last.left, box.left),
                min(last.top, box.top),
                max(last.right, box.right),
                max(last.bottom, box.bottom),
            )
        else:
            found.append(box)
    return [_shown(box, (left, bottom, right, top), turn) for box in found]


def _shown(box: Box, page: tuple[float, float, float, float], turn: int) -> Box:
    """A box of the file (from the bottom up) as it stands on the page as it is shown."""
    left, bottom, right, top = page
    x0, y0, x1, y1 = box.left, box.top, box.right, box.bottom
    return (
        Box(x0 - left, top - y1, x1 - left, top - y0),
        Box(y0 - bottom, x0 - left, y1 - bottom, x1 - left),
        Box(right - x1, y0 - bottom, right - x0, y1 - bottom),
        Box(top - y1, right - x1, top - y0, right - x0),
    )[turn]


def _is_beside(line: Box, box: Box) -> bool:
    """Whether a character stands on a line, or below it where the line is a column so far."""
    width, height = box.right - box.left, box.bottom - box.top
    shared = min(line.bottom, box.bottom) - max(line.top, box.top)
    if shared > 0.5 * min(line.bottom - line.top, height):
        return max(box.left - line.right, line.left - box.right) < 4 * max(height, 1.0)
    below = min(line.right, box.right) - max(line.left, box.left)
    is_column = line.right - line.left < 1.5 * width and below > 0.5 * width
    return is_column and 0 <= line.top - box.bottom + 0.1 * height < 0.5 * height
