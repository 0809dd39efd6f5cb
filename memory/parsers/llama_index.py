"""What LlamaIndex's file readers read beyond the formats here: slides and sheets."""

__all__ = ["LlamaIndexParser"]

import re
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
from memory.errors import DocumentError, UnreadableDocument, UnsupportedFormat
from memory.files import read_bytes
from memory.rows import table_text
from serving.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class LlamaIndexParser:
    """Reads PPTX and XLSX; a page is a slide or a sheet.

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


def _texts(module: str, reader: str, options: dict[str, Any], path: Path) -> list[str]:
    """What a reader gives for a file, cleaned."""
    made = getattr(import_module(f"llama_index.readers.file.{module}"), reader)(**options)
    return [clean(document.text) for document in made.load_data(path)]


def _slides(path: Path, data: bytes, folder: Path) -> Pages:
    options = {"extract_images": False, "num_workers": 0, "raise_on_error": True}
    copy = folder / "slides.pptx"  # the reader goes by the name
    copy.write_bytes(data)
    texts = _texts("slides", "PptxReader", options, copy)
    return [[Block(text.strip())] if text.strip() else [] for text in texts]


def _sheets(path: Path, data: bytes, folder: Path) -> Pages:
    # Without a header no row is taken for names and lost; numbers stay as they are shown.
    options: dict[str, Any] = {"field_separator": _NEXT_CELL, "key_value_separator": _CELL}
    options |= {"pandas_config": {"header": None, "dtype": object}}
    pages: Pages = []
    for sheet in _texts("tabular", "PandasExcelReader", options, path):
        rows = re.split(f"(?:^|\n)0{_CELL}", sheet)[1:]
        cells = ([re.sub(f"^\\d+{_CELL}", "", c) for c in row.split(_NEXT_CELL)] for row in rows)
        text = table_text(list(cells))
        pages.append([Block(text, "table")] if text else [])
    return pages


_NEXT_CELL, _CELL = "\ue000", "\ue001"  # no sheet has these characters
_OFFICE = "application/vnd.openxmlformats-officedocument"
_READERS: dict[str, tuple[str, Callable[[Path, bytes, Path], Pages]]] = {
    "pptx": (f"{_OFFICE}.presentationml.presentation", _slides),
    "xlsx": (f"{_OFFICE}.spreadsheetml.sheet", _sheets),
}
