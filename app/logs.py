"""Logs: words for a person at the terminal, and a line of JSON for each event in a file.

What is logged says which document, how long and how many tokens, never what a document, a question
or an answer holds; those stand in the library and in the files of a batch.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from serving.errors import GistreeError

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OURS = ("app", "agents", "memory", "retrieval", "serving", "ui")


class LogNotWritable(GistreeError):
    """The file for logs cannot be written."""


class AsJson(logging.Formatter):
    """A record as one JSON object: time, level, from, process, event, and the record's extras."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "from": record.name,
            "process": record.process,
            "event": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _USUAL}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(*, verbose: bool = False, file: Path | None = None) -> None:
    """Sends warnings (verbose: everything) to standard error, and everything of ours to a file.

    Args:
        verbose: Whether the person wants to see what happens.
        file: Lines are added to it; several processes may share it. None: no file.

    Raises:
        LogNotWritable: the file cannot be opened.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    if file is None:
        return
    try:
        # Opened to append: each line is one write, so that processes do not cut into each other.
        handler = logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise LogNotWritable(f"the log {file} cannot be written: {error}") from error
    handler.setFormatter(AsJson())
    for shown in logging.getLogger().handlers:
        shown.setLevel(logging.INFO if verbose else logging.WARNING)
    for name in _OURS:
        ours = logging.getLogger(name)
        ours.setLevel(logging.INFO)
        ours.addHandler(handler)


def log_file() -> Path | None:
    """The file that ``GISTREE_LOG`` names; None where it names none."""
    named = os.environ.get("GISTREE_LOG", "")
    return Path(named).expanduser() if named else None
