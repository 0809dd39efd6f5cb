"""Parquet, in and out, through pyarrow."""

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.batch.errors import BadQuestions
from serving.errors import MissingExtra

_ROWS_AT_ONCE = 1_000


def check_parquet() -> None:
    """Whether Parquet can be read and written here, before hours of work.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("Parquet", "parquet")


def rows_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a file, one by one.

    Raises:
        BadQuestions: it is no Parquet.
        MissingExtra: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise BadQuestions(f"{path} cannot be read as Parquet: {error}") from error


def write_rows(path: Path, rows: Iterator[Mapping[str, Any]], columns: tuple[str, ...]) -> None:
    """Writes rows of texts as a file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.string()) for name in columns])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        part: list[Mapping[str, Any]] = []
        for row in rows:
            part.append(row)
            if len(part) == _ROWS_AT_ONCE:
                writer.write_table(pyarrow.Table.from_pylist(part, schema=schema))
                part = []
        writer.write_table(pyarrow.Table.from_pylist(part, schema=schema))
