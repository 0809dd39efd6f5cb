"""What LlamaIndex's file readers read beyond the formats here: slides, sheets, notebooks, mail."""

__all__ = ["LlamaIndexParser"]

import csv
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memory.archives import ArchiveLimits, open_archive
from memory.blocks import Block, Info, PageStart, Part
from memory.characters import clean
from memory.encodings import decode
from memory.errors import DocumentError, UnreadableDocument, UnsupportedFormat
from memory.files import read_bytes
from memory.plain_text import blocks
from serving.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class LlamaIndexParser:
    """Reads PPTX, XLSX, CSV, TSV, IPYNB, EML and MBOX; a page is a slide, a sheet or a message.

    Pictures are not captioned and nothing is sent to a model: the readers work offline.

    Attributes:
        max_bytes: Largest file that is read.
        limits: What a zipped one may unpack to.
    """

    max_bytes: int = 128 * 2**20
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)

    def parse(self, path: Path, *, password: str | None = None) -> Iterator[Part]:
        """The pages that the reader of this format gives.

        Raises:
            MissingExtra: LlamaIndex's readers, or what they need, are not installed.
        """
        data = read_bytes(path, self.max_bytes)
        kind = _kind(path, data)
        if kind in ("pptx", "xlsx"):
            self._check_size(path)
        media_type, read = _READERS[kind]
        try:
            with warnings.catch_warnings(), TemporaryDirectory() as folder:
                warnings.simplefilter("ignore")  # the readers' own, of no use to a person
                pages = read(path, data, Path(folder))
        except ImportError as error:
            raise MissingExtra(f"reading {kind.upper()} files", "llama-index") from error
        except (DocumentError, MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # readers of several libraries, each with errors of its own
            raise UnreadableDocument(
                f"{path.name!r} cannot be read as {kind.upper()} ({error}); "
                "open it in the program that made it and save it anew"
            ) from error
        yield Info(media_type, paged=kind == "pptx", num_pages=len(pages))
        for number, page in enumerate(pages, 1):
            yield PageStart(str(number) if kind == "pptx" else "")
            yield from page

    def _check_size(self, path: Path) -> None:
        """Refuses a bomb before a library unpacks it unbounded."""
        with open_archive(path, self.limits) as archive:
            for name in sorted(archive.names):
                if name.endswith((".xml", ".rels")):
                    archive.read(name)


Pages = list[list[Block]]


def _kind(path: Path, data: bytes) -> str:
    suffix = path.suffix.lower().lstrip(".")
    if data.startswith(b"PK") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as package:
            names = package.NameToInfo
            suffix = "pptx" if "ppt/presentation.xml" in names else suffix
            suffix = "xlsx" if "xl/workbook.xml" in names else suffix
    if suffix not in _READERS:
        known = ", ".join(sorted(_READERS)).upper()
        raise UnsupportedFormat(
            f"{path.name!r} is none of {known}, which LlamaIndex's readers read"
        )
    return suffix


def _texts(module: str, reader: str, options: dict[str, Any], path: Path, **how: Any) -> list[str]:
    """What a reader gives for a file, cleaned."""
    made = getattr(import_module(f"llama_index.readers.file.{module}"), reader)(**options)
    return [clean(document.text) for document in made.load_data(path, **how)]


def _slides(path: Path, data: bytes, folder: Path) -> Pages:
    options = {"extract_images": False, "num_workers": 0, "raise_on_error": True}
    copy = folder / "slides.pptx"  # the reader goes by the name
    copy.write_bytes(data)
    texts = _texts("slides", "PptxReader", options, copy)
    return [[Block(text.strip())] if text.strip() else [] for text in texts]


def _sheets(path: Path, data: bytes, folder: Path) -> Pages:
    texts = _texts("tabular", "PandasExcelReader", {"field_separator": " | "}, path)
    return [_rows(text.split("\n")) for text in texts]


def _table(path: Path, data: bytes, folder: Path) -> Pages:
    text = decode(data).text
    copy = folder / "table.csv"
    copy.write_text(text, encoding="utf-8")
    try:
        delimiter = csv.Sniffer().sniff(text[:20_000], delimiters=",;\t|").delimiter
    except csv.Error:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    texts = _texts("paged_csv", "PagedCSVReader", {}, copy, delimiter=delimiter)
    return [_rows([text.replace("\n", " | ") for text in texts])]


def _notebook(path: Path, data: bytes, folder: Path) -> Pages:
    copy = folder / "notebook.ipynb"
    copy.write_bytes(data)
    texts = _texts("ipynb", "IPYNBReader", {"concatenate": True}, copy)
    return [[Block(text.strip("\n"), "code") for text in texts if text.strip()]]


def _mails(path: Path, data: bytes, folder: Path) -> Pages:
    if not data.startswith(b"From "):  # one message becomes a mailbox of one
        data = b"From -\n" + data.replace(b"\nFrom ", b"\n>From ")
    copy = folder / "mails.mbox"
    copy.write_bytes(data)
    return [list(blocks(text.split("\n"))) for text in _texts("mbox", "MboxReader", {}, copy)]


def _rows(lines: list[str]) -> list[Block]:
    text = "\n".join(line for line in lines if line.strip())
    return [Block(text, "table")] if text else []


_OFFICE = "application/vnd.openxmlformats-officedocument"
_READERS: dict[str, tuple[str, Callable[[Path, bytes, Path], Pages]]] = {
    "pptx": (f"{_OFFICE}.presentationml.presentation", _slides),
    "xlsx": (f"{_OFFICE}.spreadsheetml.sheet", _sheets),
    "csv": ("text/csv", _table),
    "tsv": ("text/tab-separated-values", _table),
    "ipynb": ("application/x-ipynb+json", _notebook),
    "eml": ("message/rfc822", _mails),
    "mbox": ("application/mbox", _mails),
}
