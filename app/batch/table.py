"""A table out of documents: a row each, a column a field, with its quote and its place."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from agents.fields import Field, fields_of
from app.batch.errors import BadQuestions
from app.batch.questions import Row, Survey
from serving.errors import GistreeError

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "calls")


def read_fields(path: Path) -> tuple[tuple[Field, ...], Survey]:
    """The fields of a schema file, and how many there are with the hash of the file.

    Raises:
        BadQuestions: it cannot be read, or is no schema of fields.
    """
    try:
        data = path.read_bytes()
        fields = fields_of(json.loads(data))
    except OSError as error:
        raise BadQuestions(f"the schema {path} cannot be read: {error}") from error
    except (ValueError, RecursionError, GistreeError) as error:
        raise BadQuestions(f"{path}: {error}") from error
    return fields, Survey(len(fields), hashlib.sha256(data).hexdigest())


def cells(fields: Sequence[Field], documents: Sequence[str]) -> Iterator[Row]:
    """Every field of every document, document by document."""
    number = 0
    for document in documents:
        for field in fields:
            yield Row(
                number,
                f"{document[:12]}/{field.name}",
                field.question,
                documents=(document,),
                field=field,
            )
            number += 1


@dataclass(frozen=True, slots=True)
class Table:
    """How the cells of a batch become a table.

    Attributes:
        fields: Its columns.
        titles: Of the documents, by id.
    """

    fields: tuple[Field, ...]
    titles: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Of CSV and Parquet."""
        names = [field.name for field in self.fields]
        own = (each for name in names for each in (name, f"{name}:quote", f"{name}:place"))
        return ("document", "title", *own, "status", "error", *_TOKENS)

    def rows(self, lines: Iterator[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The rows as JSON objects, from the cells in their order."""
        for document, some in groupby(lines, key=lambda line: str(line["document"])):
            found = {line["field"]: line for line in some}
            errors = {name: line["error"] for name, line in found.items() if line["error"]}
            whole = "ok" if len(found) == len(self.fields) else "unfinished"
            names = [field.name for field in self.fields]
            yield {
                "document": document,
                "title": self.titles.get(document, ""),
                "values": {name: found.get(name, {}).get("value") for name in names},
                "citations": {name: _best(found.get(name, {})) for name in names},
                "status": "error" if errors else whole,
                "errors": errors,
                "usage": {
                    name: sum(line.get("usage", {}).get(name, 0) for line in found.values())
                    for name in _TOKENS
                },
            }

    @staticmethod
    def flat(row: Mapping[str, Any]) -> dict[str, str]:
        """A row for CSV or Parquet."""
        cells: dict[str, Any] = {"document": row["document"], "title": row["title"]}
        for name, value in row["values"].items():
            citation = row["citations"][name]
            cells[name] = value
            cells[f"{name}:quote"] = citation["quote"] if citation else None
            cells[f"{name}:place"] = _place(citation) if citation else None
        errors = "; ".join(f"{name}: {error}" for name, error in row["errors"].items())
        cells |= {"status": row["status"], "error": errors, **row["usage"]}
        return {name: _text(value) for name, value in cells.items()}


def _best(line: Mapping[str, Any]) -> Any:
    """The citation that bears a value out; None where there is no value."""
    citations = line.get("citations") or [None]
    return citations[0] if line.get("value") is not None else None


def _place(citation: Mapping[str, Any]) -> str:
    page = citation["label"] or citation["page"]
    section = citation["section"]
    return f"page {page}" if page else section[-1] if section else f"{citation['position']:.0%} in"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
