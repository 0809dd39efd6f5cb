"""Which parser reads a file: told from its content first, from its name second."""

import re
import zipfile
from pathlib import Path

from memory.encodings import decode
from memory.errors import DocumentNotFound, EmptyDocument, PasswordNeeded, UnsupportedFormat

READABLE = (
    "PDF, EPUB, DOCX, ODT, HTML, Markdown, RTF, plain text, CSV, Jupyter notebooks and mail (EML, "
    "MBOX) are read; with the extra 'llama-index' also PPTX and XLSX"
)

_HEAD_BYTES = 8192
_PDF_HEADER_WITHIN = 1024  # what precedes it is a mail header or other debris
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_HTML_PIECE = re.compile(r"\s*<(?:head|body|title|meta|div|p|h[1-6]|table|section)[\s>]", re.I)
_BY_SUFFIX = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht"), "html"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".eml", ".mbox"), "mail"),
    ".ipynb": "notebook",
    **dict.fromkeys((".txt", ".text", ".rst", ".log", ".adoc", ".org", ".tex"), "text"),
}
_ZIPPED_SUFFIXES = {".epub": "epub", ".docx": "docx", ".docm": "docx", ".odt": "odt"}
_IN_ZIP = (  # a file that only packages of this kind have
    ("word/document.xml", "docx"),
    ("ppt/presentation.xml", "llama_index"),
    ("xl/workbook.xml", "llama_index"),
    ("META-INF/container.xml", "epub"),
)
_MIMETYPES = {
    "application/epub+zip": "epub",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.text-template": "odt",
    "application/vnd.oasis.opendocument.text-master": "odt",
}
_OLE_STREAMS = (
    ("WordDocument", "a Word 97-2003 document (.doc)", "open it in Word or LibreOffice", "DOCX"),
    ("Workbook", "an Excel 97-2003 workbook (.xls)", "open it in Excel or LibreOffice", "XLSX"),
    ("PowerPoint Document", "a PowerPoint 97-2003 file (.ppt)", "open it in PowerPoint", "PPTX"),
    ("__substg1.0_", "an Outlook message (.msg)", "open it in a mail program", "EML"),
)
_FOREIGN = (  # how a file begins, what it is, what to do
    (rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\0|MM\0\*|RIFF....WEBP|BM....\0\0\0\0", "an image",
     "print it to PDF: the pages of a PDF are read even where they are pictures"),
    (rb"\x1f\x8b|BZh|\xfd7zXZ|7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd", "a packed file",
     "unpack it and add what is inside"),
    (rb"ID3|\xff\xfb|OggS|fLaC|....ftyp|\x1aE\xdf\xa3|RIFF....(?:WAVE|AVI )", "sound or video",
     "add a transcript of it"),
    (rb".{60}(?:BOOKMOBI|TEXtREAd)", "a Kindle book", "convert it to EPUB, with Calibre say"),
    (rb"AT&TFORM", "a DjVu file", "convert it to PDF"),
    (rb"%!PS", "a PostScript file", "convert it to PDF, with ps2pdf say"),
    (rb"SQLite format 3|\x7fELF|MZ.\0|\xca\xfe\xba\xbe|PAR1|\x93NUMPY", "data or a program", ""),
)  # fmt: skip


def sniff(path: Path) -> str:
    """Name of the parser that reads a file.

    Raises:
        DocumentNotFound: there is no such file.
        EmptyDocument: it has no bytes.
        PasswordNeeded: Office has encrypted it.
        UnsupportedFormat: none reads it; the message says what it is, what to do, what is read.
    """
    if path.is_dir():
        raise UnsupportedFormat(f"{str(path)!r} is a folder; name the files in it")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError as error:
        raise DocumentNotFound(f"there is no file {str(path)!r}") from error
    if not head:
        raise EmptyDocument(f"{path.name!r} has no bytes; perhaps it was not saved or copied whole")
    if _is_pdf(path, head):
        return "pdf"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(path)
    if head.startswith(_OLE):
        raise _ole(path)
    for beginning, what, remedy in _FOREIGN:
        if re.match(beginning, head, re.DOTALL):
            raise _unsupported(path, what, remedy)
    return _written(path, head)


def _is_pdf(path: Path, head: bytes) -> bool:
    at = head[: _PDF_HEADER_WITHIN + 5].find(b"%PDF-")
    if at == 0:
        return True
    if at < 0:
        return False
    # A text about PDF may show such a header too; only a PDF ends like one.
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 4096, 0))
        tail = file.read()
    return path.suffix.lower() == ".pdf" or b"%%EOF" in tail or b"startxref" in tail


def _zipped(path: Path) -> str:
    by_suffix = _ZIPPED_SUFFIXES.get(path.suffix.lower())
    try:
        with zipfile.ZipFile(path) as package:
            names = set(package.NameToInfo)
            mimetype = ""
            if "mimetype" in names and package.getinfo("mimetype").file_size < 200:
                mimetype = package.read("mimetype").decode("ascii", errors="replace").strip()
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError, NotImplementedError):
        if by_suffix:
            return by_suffix  # its parser says what is wrong
        raise _unsupported(path, "a damaged zip archive", "get the file anew") from None
    if mimetype in _MIMETYPES:
        return _MIMETYPES[mimetype]
    if mimetype.startswith("application/vnd.oasis.opendocument."):
        kind = mimetype.rpartition(".")[2]
        raise _unsupported(path, f"an OpenDocument {kind}", "save it as PDF")
    for name, parser in _IN_ZIP:
        if name in names:
            return parser
    if any(name.lower().endswith(".opf") for name in names):
        return "epub"
    if by_suffix:
        return by_suffix
    raise _unsupported(path, "a zip archive", "unpack it and add what is inside")


def _ole(path: Path) -> UnsupportedFormat | PasswordNeeded:
    """What to say of a file in the container of Office before 2007."""
    with path.open("rb") as file:
        content = file.read(64 * 2**20)
    if "EncryptedPackage".encode("utf-16-le") in content:
        return PasswordNeeded(
            f"{path.name!r} is an Office file with a password, which is not read; "
            "open it in Office and save it without one"
        )
    for stream, what, program, target in _OLE_STREAMS:
        if stream.encode("utf-16-le") in content:
            return _unsupported(path, what, f"{program} and save it as {target}")
    return _unsupported(path, "an old Office file", "save it in a newer format")


def _written(path: Path, head: bytes) -> str:
    """The parser of a file that is text, or says that it is none."""
    suffix = path.suffix.lower()
    if len(head) == _HEAD_BYTES:  # not cut within a character
        head = head[: head.rfind(b"\n") + 1] or head
    text = decode(head).text
    by_suffix = _BY_SUFFIX.get(suffix)
    if _HTML.match(text):
        return "html"
    if by_suffix == "markdown":
        return by_suffix
    if "<FictionBook" in text[:1000]:
        raise _unsupported(path, "a FictionBook", "convert it to EPUB, with Calibre say")
    if re.match(r"(?:.*\n){0,20}Content-Type:\s*multipart/related", text, re.IGNORECASE) and (
        suffix in (".mht", ".mhtml")
    ):
        raise _unsupported(path, "a web archive", "save the page as HTML")
    if by_suffix:
        return by_suffix
    controls = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    if controls * 50 > len(head) and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unsupported(path, "not text, nor any format known here", "")
    return "html" if _HTML_PIECE.match(text) and "</" in text else "text"


def _unsupported(path: Path, what: str, remedy: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"{path.name!r} is {what}, which is not read"
        + (f"; {remedy}" if remedy else "")
        + f" ({READABLE})"
    )
