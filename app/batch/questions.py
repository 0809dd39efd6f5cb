"""The questions of a batch, read row by row from JSONL, CSV, Parquet or XLSX."""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.fields import Field
from app.batch.errors import BadQuestions

COLUMNS = ("id", "question", "document", "documents", "reader", "budget_tokens")
"""What is understood; other columns are left alone."""
_BIGGEST_FIELD = 1_000_000  # characters of one CSV field
_HASHES_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Row:
    """A question to be answered.

    Attributes:
        number: Its place in the file, from 0.
        id: The file's own name for it, or its number from 1.
        question: What is asked.
        documents: Ids, names or titles; empty asks all that the batch is about.
        reader: Reader of this row; empty takes the batch's.
        budget_tokens: Likewise; 0 takes the batch's.
        field: Of a table, the field that the answer fills in.
    """

    number: int
    id: str
    question: str
    documents: tuple[str, ...] = ()
    reader: str = ""
    budget_tokens: int = 0
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What a question file holds: number of rows, SHA-256 of its bytes."""

    rows: int
    digest: str


def survey(path: Path) -> Survey:
    """Looks through a whole file once, in little memory (8 bytes a row).

    Raises:
        BadQuestions: it cannot be read, holds nothing, or two rows bear one id.
    """
    hashes: list[np.ndarray[Any, np.dtype[np.uint64]]] = []
    part: list[int] = []
    count = 0
    for row in questions(path):
        count += 1
        part.append(_hash(row.id))
        if len(part) == _HASHES_AT_ONCE:
            hashes.append(np.array(part, dtype=np.uint64))
            part = []
    if not count:
        raise BadQuestions(f"{path} holds no questions")
    hashes.append(np.array(part, dtype=np.uint64))
    every = np.concatenate(hashes)
    every.sort()
    same = every[1:][every[1:] == every[:-1]]
    if len(same):
        raise BadQuestions(_doubled(path, int(same[0])))
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return Survey(count, digest.hexdigest())


def _hash(name: str) -> int:
    data = name.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _doubled(path: Path, wanted: int) -> str:
    numbers, name = [], ""
    for row in questions(path):
        if _hash(row.id) == wanted:
            numbers.append(row.number + 1)
            name = row.id
    return (
        f"{path}: rows {numbers[0]} and {numbers[1]} both have the id {name!r}; give each row its "
        'own, or leave the column "id" out'
    )


def questions(path: Path) -> Iterator[Row]:
    """The rows of a file, one by one.

    Raises:
        BadQuestions: no such file, no such format, no column "question", or a row that is none.
    """
    readers = {
        ".jsonl": _jsonl,
        ".ndjson": _jsonl,
        ".csv": _csv,
        ".parquet": _parquet,
        ".xlsx": _xlsx,
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        raise BadQuestions(f"{path} is none of .jsonl, .csv, .parquet, .xlsx")
    if not path.is_file():
        raise BadQuestions(f"there is no file {path}")
    number = 0
    try:
        for line, values in read(path):
            yield _row(path, number, line, values)
            number += 1
    except UnicodeDecodeError as error:
        raise BadQuestions(
            f"{path}, line {_not_utf8(path):,} holds bytes that are not UTF-8; save the file as "
            "UTF-8"
        ) from error
    except OSError as error:
        raise BadQuestions(f"{path} cannot be read: {error}") from error


def _not_utf8(path: Path) -> int:
    """The first line of a file that is not UTF-8, from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _jsonl(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadQuestions(f"{path}, line {number} is not JSON: {error}") from error
            if not isinstance(values, dict):
                raise BadQuestions(f"{path}, line {number} is no JSON object: {line[:60]!r}")
            yield f"line {number}", values


def _csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    csv.field_size_limit(_BIGGEST_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter=_delimiter(path))
        try:
            for values in rows:
                yield f"line {rows.line_num}", values
        except csv.Error as error:
            raise BadQuestions(f"{path}, line {rows.line_num}: {error}") from error


def _delimiter(path: Path) -> str:
    """What parts the columns; spreadsheets write semicolons where the comma parts decimals."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        names = file.readline(_BIGGEST_FIELD)
    return next((sign for sign in ",;\t" if sign in names), ",")


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from app.batch.parquet import rows_of

    for number, values in enumerate(rows_of(path), start=1):
        yield f"row {number}", values


def _xlsx(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from app.batch.sheet import rows_of

    yield from rows_of(path)


def _row(path: Path, number: int, line: str, values: Mapping[str, Any]) -> Row:
    question = values.get("question")
    if question is None and "question" not in values:
        known = ", ".join(map(str, values)) or "none"
        raise BadQuestions(
            f'{path}, {line} has no column "question" (it has: {known}); others that are '
            f"understood: {', '.join(c for c in COLUMNS if c != 'question')}"
        )
    if not isinstance(question, str) or not question.strip():
        raise BadQuestions(f"{path}, {line}: the question is empty")
    documents = values.get("documents") or values.get("document") or ()
    if not isinstance(documents, str | list | tuple):
        raise BadQuestions(f"{path}, {line}: documents is {documents!r}; give a name or a list")
    named = values.get("id")
    budget = values.get("budget_tokens")
    try:
        tokens = int(budget) if budget not in (None, "") else 0
    except (TypeError, ValueError, OverflowError) as error:
        raise BadQuestions(f"{path}, {line}: budget_tokens is {budget!r}, no number") from error
    return Row(
        number=number,
        id=str(number + 1) if named in (None, "") else str(named),
        question=question,
        documents=_names(documents),
        reader=str(values.get("reader") or ""),
        budget_tokens=tokens,
    )


def _names(given: str | Sequence[Any]) -> tuple[str, ...]:
    """Documents of a row: a list, or one text with names parted by semicolons."""
    if isinstance(given, str):
        given = given.split(";")
    return tuple(str(name).strip() for name in given if str(name).strip())
