"""A file to a document: read by a process of its own, so that no file takes the library down."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from memory.blocks import PageStart, Part, Reading
from memory.canonical import Builder
from memory.document import Document, Problem
from memory.errors import (
    DocumentNotFound,
    DocumentTooLarge,
    UnreadableDocument,
    UnsupportedFormat,
)
from memory.parse_failures import explain
from memory.parse_process import Limits, ParseProcess
from memory.wire import Failed, Finished, Message
from serving.errors import UnknownName
from serving.plugins import names

log = logging.getLogger(__name__)

PARSERS = "memory.parsers"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far reading is.

    Attributes:
        pages_done: Pages read.
        pages_total: In all; 0 where not known in advance.
        what: How the page that is read now is had: "text", "ocr", "blank" or "unread".
    """

    pages_done: int
    pages_total: int
    what: str


def read_document(
    path: Path,
    *,
    name: str | None = None,
    parser: str = "",
    password: str | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    limits: Limits | None = None,
) -> Document:
    """The document in a file. Pages that were read before a parser failed are kept.

    Args:
        path: Of the file.
        name: What the document is called; the file's name if not given.
        parser: Which one reads it; told from the file's content where empty.
        password: For an encrypted file.
        on_progress: Called as each page begins to be read, and at the end.
        limits: What it may take.

    Raises:
        DocumentError: nothing of it can be read; the class and the message say why.
        MissingExtra: it can be read once an extra is installed.
        UnknownName: there is no such parser.
    """
    if parser and parser not in names(PARSERS):
        raise UnknownName("parser", parser, names(PARSERS))
    name = name or path.name
    id, size_bytes = _digest(path)
    limits = limits or Limits()
    builder, tell = Builder(), _Teller(on_progress)
    with ParseProcess(path, name=name, parser=parser, password=password, limits=limits) as process:
        last: Failed | Finished | None = None
        for message in (_renamed(m, path.name, name) for m in process.messages()):
            if isinstance(message, Failed | Finished):
                last = message
                break
            builder.add(message)
            tell(message, builder)
            if builder.pages_done > limits.num_pages:
                raise DocumentTooLarge(
                    f"{name!r} has more than {limits.num_pages:,} pages; split it into parts"
                )
        log.info(
            "parse name=%s pages=%d peak_mb=%d ended=%s",
            name,
            builder.pages_done,
            process.peak_bytes // 2**20,
            process.ended_for or (last and type(last).__name__) or f"signal {process.signal}",
        )
        log.debug("parser's own words: %s", process.log())
        if not isinstance(last, Finished):
            failure = explain(last, process, limits)
            if failure.is_final or not builder.has_text:
                raise failure.error(name)
            builder.lost(failure.what, failure.remedy)
    on_progress(Progress(builder.pages_done, builder.pages_done, "text"))
    return builder.document(id=id, name=name, size_bytes=size_bytes)


class _Teller:
    """Tells of each page once, as soon as it is known that it is being read."""

    def __init__(self, on_progress: Callable[[Progress], None]) -> None:
        self._on_progress = on_progress
        self._at = -1

    def __call__(self, part: Part, builder: Builder) -> None:
        if isinstance(part, PageStart | Reading):
            at = part.page if isinstance(part, Reading) else builder.pages_done - 1
            if at > self._at:
                self._at = at
                self._on_progress(Progress(at, builder.num_pages, part.source))


def _renamed(message: Message, old: str, new: str) -> Message:
    """The message with the name that the person knows; a library keeps files under other names."""
    if isinstance(message, Failed):
        return replace(message, message=message.message.replace(repr(old), repr(new)))
    if isinstance(message, Problem):
        return replace(message, what=message.what.replace(repr(old), repr(new)))
    return message


def _digest(path: Path) -> tuple[str, int]:
    """SHA-256 of a file's bytes, and their number."""
    if path.is_dir():
        raise UnsupportedFormat(f"{str(path)!r} is a folder; name the files in it")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest, file.tell()
    except FileNotFoundError as error:
        raise DocumentNotFound(f"there is no file {str(path)!r}") from error
    except OSError as error:
        raise UnreadableDocument(
            f"{str(path)!r} cannot be opened ({error.strerror}); check that you may read it"
        ) from error
