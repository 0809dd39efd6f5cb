"""Questions in a spreadsheet: the first sheet of an XLSX file, read row by row."""

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.batch.errors import BadQuestions
from serving.errors import MissingExtra


def rows_of(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """("row 2", its values by column); the first row that holds anything names the columns.

    Raises:
        BadQuestions: it is no such file.
        MissingExtra: openpyxl is not installed.
    """
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingExtra("XLSX", "xlsx") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles that it does not know
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise BadQuestions(f"{path} is no XLSX file: {error}") from error
    names: list[str] = []
    try:
        for number, cells in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1):
            values = [_plain(cell) for cell in cells]
            if all(value in (None, "") for value in values):
                continue
            if names:
                yield f"row {number}", dict(zip(names, values, strict=False))
            else:
                names = ["" if value is None else str(value).strip() for value in values]
    finally:
        book.close()


def _plain(cell: Any) -> Any:
    """A cell's value as the other formats have it: text, or None; whole numbers without ".0"."""
    if cell is None or isinstance(cell, str):
        return cell
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
