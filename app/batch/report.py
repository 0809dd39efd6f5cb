"""What a batch came to: answers, refusals, errors, tokens, the slowest rows; HTML and JSON."""

import heapq
import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.batch.errors import OutputNotWritable
from app.batch.journal import write_whole

_SHOWN = 20  # slowest rows, and kinds of errors
_MOST_KINDS = 10_000  # of errors that are counted apart
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #8886;"
    "padding:.3em .8em;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}:root{color-scheme:light dark}"
)


@dataclass(frozen=True, slots=True)
class Slow:
    """A row that took long."""

    id: str
    seconds: float
    question: str


@dataclass(frozen=True, slots=True)
class Report:
    """A batch in numbers.

    Attributes:
        rows: Rows that it has; those that are neither answered, refused nor failed are left.
        answered: Rows whose answer was found in the documents.
        refused: Rows whose answer was not.
        failed: Rows for which no answer could be made.
        prompt_tokens: Tokens of all prompts.
        cached_tokens: Those of them that were not computed again.
        completion_tokens: Tokens of all replies.
        calls: Calls of the model.
        seconds: Of all rows together; rows that were asked at once count each.
        slowest: The rows that took longest, the slowest first.
        errors: What failed and how often, the most frequent first.
        settings: What shaped the answers.
    """

    rows: int
    answered: int
    refused: int
    failed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    calls: int
    seconds: float
    slowest: tuple[Slow, ...]
    errors: tuple[tuple[str, int], ...]
    settings: Mapping[str, Any]

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that came from a cache."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def summed(rows: Iterable[Mapping[str, Any]], *, total: int, settings: Mapping[str, Any]) -> Report:
    """Goes through the rows of an answer file once; memory does not grow with them.

    Args:
        rows: As the journal keeps them.
        total: How many rows the batch has.
        settings: What shaped the answers.
    """
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    slowest: list[tuple[float, int, Slow]] = []
    for row in rows:
        counts.update(row.get("usage", {}))  # a failed row may have cost some, too
        if row["status"] == "error":
            counts["failed"] += 1
            if row["error"] in errors or len(errors) < _MOST_KINDS:
                errors[row["error"]] += 1
            continue
        counts["answered" if row["found"] else "refused"] += 1
        counts["milliseconds"] += round(1000 * row["seconds"])
        slow = Slow(row["id"], row["seconds"], row["question"])
        heapq.heappush(slowest, (slow.seconds, row["row"], slow))
        if len(slowest) > _SHOWN:
            heapq.heappop(slowest)
    return Report(
        rows=total,
        answered=counts["answered"],
        refused=counts["refused"],
        failed=counts["failed"],
        prompt_tokens=counts["prompt_tokens"],
        cached_tokens=counts["cached_tokens"],
        completion_tokens=counts["completion_tokens"],
        calls=counts["calls"],
        seconds=counts["milliseconds"] / 1000,
        slowest=tuple(slow for _, _, slow in sorted(slowest, reverse=True)),
        errors=tuple(errors.most_common(_SHOWN)),
        settings=settings,
    )


def check_report(file: Path) -> None:
    """Whether a report can be written there, before hours of work.

    Raises:
        OutputNotWritable: no such format, or no such folder.
    """
    if file.suffix not in (".html", ".json"):
        raise OutputNotWritable(f"the report {file} is none of .html, .json")
    if not file.absolute().parent.is_dir():
        raise OutputNotWritable(f"there is no folder {file.absolute().parent}")


def write_report(report: Report, file: Path) -> None:
    """Writes a report as .json or as a page of HTML, by the file's name."""
    if file.suffix == ".json":
        text = json.dumps(
            asdict(report) | {"hit_rate": round(report.hit_rate, 4)}, ensure_ascii=False, indent=1
        )
    else:
        text = _page(report)
    write_whole(file, iter([text.encode("utf-8", errors="replace")]))


def _page(report: Report) -> str:
    numbers = {
        "rows": report.rows,
        "answered": report.answered,
        "not found in the documents": report.refused,
        "failed": report.failed,
        "left": report.rows - report.answered - report.refused - report.failed,
        "calls of the model": report.calls,
        "tokens of prompts": report.prompt_tokens,
        "of them cached": f"{report.hit_rate:.0%}",
        "tokens of replies": report.completion_tokens,
        "seconds, all rows together": round(report.seconds),
    }
    settings = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in report.settings.items()
    }
    parts = [
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Batch</title><style>{_STYLE}</style><h1>Batch</h1>",
        _table(numbers.items()),
        "<h2>Errors</h2>" + _table(report.errors) if report.errors else "",
        "<h2>Slowest rows</h2>" if report.slowest else "",
        _table((f"{slow.id}: {slow.question}", f"{slow.seconds:.1f} s") for slow in report.slowest),
        "<h2>Settings</h2>" + _table(settings.items()),
    ]
    return "\n".join(part for part in parts if part)


def _table(rows: Iterable[tuple[str, object]]) -> str:
    """Two columns; every text is escaped, for questions and errors quote foreign files."""
    lines = []
    for name, value in rows:
        number = isinstance(value, int)
        shown = f"{value:,}" if number else html.escape(str(value))
        kind = " class=n" if number else ""
        lines.append(f"<tr><th scope=row>{html.escape(name)}</th><td{kind}>{shown}</td></tr>")
    return f"<table>{''.join(lines)}</table>" if lines else ""
