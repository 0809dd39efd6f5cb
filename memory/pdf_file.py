"""Opening a PDF file: passwords, damage, and what the file says of itself."""

import ctypes
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory.blocks import Outline
from memory.characters import clean
from memory.document import Problem
from memory.errors import (
    DocumentNotFound,
    DocumentTooLarge,
    EmptyDocument,
    PasswordNeeded,
    UnreadableDocument,
)
from memory.pdf_repair import repaired

MAX_REPAIR_BYTES = 256 * 2**20
_MAX_OUTLINE = 20_000
_NOT_A_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint) - .*|.*\.(?:dvi|tex|docx?|indd|qxd|pdf|rtf)"
    r"|[\W\d_]*",
    re.IGNORECASE,
)
_START = re.compile(rb"startxref\s+(\d+)\s*$")
_DAMAGED = "its index of objects is damaged and was made anew; something may be missing"
_CUT = "its end is missing; what stood there is lost"
_ANEW = "get the file anew, or open it in a PDF viewer and save it again"
DAMAGE = frozenset({_DAMAGED, _CUT})  # what a problem says where the file is not whole


def open_pdf(path: Path, password: str | None) -> tuple[Any, list[Problem]]:
    """The ``pypdfium2.PdfDocument``, and what is wrong with the file as a whole.

    Raises:
        DocumentNotFound: there is none.
        EmptyDocument: it has no bytes.
        PasswordNeeded: it is encrypted, and no password or a wrong one was given.
        UnreadableDocument: it is no PDF file, or damaged past reading.
    """
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise DocumentNotFound(f"there is no file {str(path)!r}") from error
    if size == 0:
        raise EmptyDocument(f"{path.name!r} has no bytes; perhaps it was not saved or copied whole")
    try:
        document = pypdfium2.PdfDocument(path, password=password)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            said = "the password given is not the right one" if password else "it is encrypted"
            raise PasswordNeeded(
                f"{path.name!r} needs a password ({said}); give it "
                "(on the command line: --password)"
            ) from error
        return _open_damaged(path, size)
    return document, list(_problems(path, document))


def _open_damaged(path: Path, size: int) -> tuple[Any, list[Problem]]:
    import pypdfium2

    if size > MAX_REPAIR_BYTES:
        raise DocumentTooLarge(
            f"{path.name!r} is damaged and has {size:,} bytes; files up to {MAX_REPAIR_BYTES:,} "
            f"are repaired; {_ANEW}"
        )
    data = path.read_bytes()
    fixed = repaired(data)
    try:
        document = pypdfium2.PdfDocument(fixed) if fixed else None
    except pypdfium2.PdfiumError:
        document = None
    if document is None or len(document) == 0:
        raise UnreadableDocument(f"{path.name!r} is no PDF file that can be read; {_ANEW}")
    is_cut = b"%%EOF" not in data[-2048:]
    return document, [Problem(_CUT if is_cut else _DAMAGED, _ANEW)]


def _problems(path: Path, document: Any) -> Iterator[Problem]:
    """What can be told from the file's end and catalog."""
    import pypdfium2.raw as pdfium

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = data.rfind(b"%%EOF")
        if end < len(data) - 4096:
            yield Problem(_CUT, _ANEW)
        else:
            start = _START.search(data[max(end - 64, 0) : end])
            header = max(data.find(b"%PDF-", 0, 2048), 0)
            if start:
                # A file behind a strange beginning counts from its start or from its header.
                near = [
                    data[at : at + 24].lstrip() for at in (int(start[1]), int(start[1]) + header)
                ]
                if not any(re.match(rb"xref|\d+\s+\d+\s+obj", place) for place in near):
                    yield Problem(_DAMAGED, _ANEW)
        is_xfa = document.get_formtype() == pdfium.FORMTYPE_XFA_FULL
        if is_xfa or re.search(rb"/NeedsRendering\s+true", data):
            yield Problem(
                "it is a form that only Adobe's programs lay out (XFA); here its pages hold no "
                "more than a notice",
                "open it in Adobe Reader and print it to a new PDF file",
            )


def title(document: Any) -> str:
    """The title in the metadata, where it is one."""
    said = " ".join(clean(document.get_metadata_value("Title") or "").split())
    return "" if _NOT_A_TITLE.fullmatch(said) else said


def language(document: Any) -> str:
    """ISO 639-1 code from the catalog, or empty."""
    import pypdfium2.raw as pdfium

    length = pdfium.FPDFCatalog_GetLanguage(document, None, 0)
    if length < 4:
        return ""
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    pdfium.FPDFCatalog_GetLanguage(document, buffer, length)
    said = bytes(buffer).decode("utf-16-le", "replace").casefold()
    found = re.match("[a-z]{2}(?![a-z])", said)
    return found[0] if found else ""


def outline(document: Any, num_pages: int) -> list[Outline]:
    """The file's own table of contents; entries that lead nowhere are left out."""
    import pypdfium2

    entries: list[Outline] = []
    for bookmark in document.get_toc(max_depth=10):
        try:
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            name = " ".join(clean(bookmark.get_title()).split())
        except (pypdfium2.PdfiumError, UnicodeDecodeError):
            continue
        if name and page is not None and 0 <= page < num_pages:
            entries.append(Outline(name, bookmark.level + 1, page))
        if len(entries) >= _MAX_OUTLINE:
            break
    return entries
