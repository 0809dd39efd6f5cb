"""The answers as the person wants them: JSON lines, CSV or Parquet, as they came or as asked."""

import csv
import io
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.batch.errors import OutputNotWritable
from app.batch.journal import Journal, write_whole
from app.batch.parquet import check_parquet, write_rows
from app.batch.table import Table

COLUMNS: tuple[str, ...] = (
    *("id", "status", "question", "answer", "found", "citations", "unsupported", "reader"),
    *("model", "seconds", "prompt_tokens", "cached_tokens", "completion_tokens", "calls", "error"),
)
"""Of CSV and Parquet; citations are JSON in one field."""
FORMATS = (".jsonl", ".csv", ".parquet")


def journal_path(out: Path, *, as_it_comes: bool) -> Path:
    """Where the rows are kept as they come: the output itself where that is the same thing."""
    return out if out.suffix == ".jsonl" and as_it_comes else out.with_name(f"{out.name}.rows")


def check_output(out: Path) -> None:
    """Whether an output can be written at all.

    Raises:
        OutputNotWritable: no such format, or no such folder.
        MissingExtra: the format needs a package that is not installed.
    """
    if out.suffix not in FORMATS:
        raise OutputNotWritable(f"{out} is none of {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise OutputNotWritable(f"there is no folder {out.parent}")
    if out.is_dir():
        raise OutputNotWritable(f"{out} is a folder")
    if out.suffix == ".parquet":
        check_parquet()


def write_output(
    journal: Journal, out: Path, *, in_order: bool, table: Table | None = None
) -> None:
    """Makes the output from the journal, wholly or not at all.

    Args:
        journal: The rows.
        out: The file; nothing is done where it is the journal itself.
        in_order: Rows as the question file has them; else as they were finished.
        table: What the rows are cells of, where they are.
    """
    if out == journal.path:
        return
    rows = _ordered(journal) if in_order or table else journal.rows()
    columns, flat = COLUMNS, _flat
    if table is not None:
        rows, columns, flat = table.rows(rows), table.columns, table.flat
    try:
        if out.suffix == ".parquet":
            part = out.with_name(f".{out.name}.part")
            try:
                write_rows(part, map(flat, rows), columns)
                part.replace(out)
            finally:
                part.unlink(missing_ok=True)
        elif out.suffix == ".csv":
            write_whole(out, _csv(map(flat, rows), columns))
        else:
            write_whole(out, (f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in rows))
    except OSError as error:
        raise OutputNotWritable(
            f"{out} cannot be written ({error}); the answers are kept in {journal.path}"
        ) from error


def _ordered(journal: Journal) -> Iterator[dict[str, Any]]:
    """Rows by number; only their places in the file are held in memory."""
    with journal.path.open("rb") as file:
        numbers, places, start = array("q"), array("q"), 0
        for line in file:
            numbers.append(json.loads(line)["row"])
            places.append(start)
            start += len(line)
        for at in np.argsort(np.array(numbers, dtype=np.int64)):
            file.seek(places[int(at)])
            yield json.loads(file.readline())


def _csv(rows: Iterator[Mapping[str, str]], columns: Sequence[str]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    yield b"\xef\xbb\xbf"  # spreadsheets take the file for UTF-8 by this mark
    for row in rows:
        writer.writerow({name: _harmless(value) for name, value in row.items()})
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _harmless(value: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _flat(row: Mapping[str, Any]) -> dict[str, str]:
    every = {**row, **row.get("usage", {})}
    return {name: _text(every.get(name)) for name in COLUMNS}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
