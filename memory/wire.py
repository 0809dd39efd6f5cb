"""What a parse worker says to its parent: one line a part, a kind and its JSON.

Never pickle: a hostile file may own the worker, and then the line is what the file says.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from memory import errors
from memory.blocks import Block, Info, Outline, PageStart, Part, Reading
from memory.document import Problem
from memory.errors import DocumentError
from serving.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker's last word where it could not read the file.

    Attributes:
        kind: Class of the exception.
        message: For the person.
        extra: The extra that is missing, if that is what failed.
    """

    kind: str
    message: str
    extra: str = ""

    def error(self) -> DocumentError | MissingExtra | None:
        """The error itself; None where it is not one that gistree explains."""
        found = MissingExtra if self.kind == "MissingExtra" else getattr(errors, self.kind, None)
        if not (isinstance(found, type) and issubclass(found, (DocumentError, MissingExtra))):
            return None
        # The message is whole already; the constructors of some classes would write it again.
        error = found.__new__(found)
        Exception.__init__(error, self.message)
        if isinstance(error, MissingExtra):
            error.extra = self.extra
        return error


@dataclass(frozen=True, slots=True)
class Finished:
    """The worker's last word where all went well."""


Message = Part | Failed | Finished
_KINDS: tuple[type, ...] = (Info, PageStart, Reading, Block, Outline, Problem, Failed, Finished)


def to_line(message: Message) -> bytes:
    """A message as one line; lone surrogates, which UTF-8 cannot hold, become question marks."""
    fields = {name: getattr(message, name) for name in type(message).__slots__}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return f"{type(message).__name__} {text}\n".encode(errors="replace")


def from_line(line: bytes) -> Message:
    """The message of a line.

    Raises:
        ValueError: the line is none that ``to_line`` makes.
    """
    kind, _, fields = line.partition(b" ")
    adapter = _adapters().get(kind)
    if adapter is None:
        raise ValueError(f"a worker sent {line[:80]!r}")
    message: Message = adapter.validate_json(fields, strict=True)  # raises a kind of ValueError
    return message


@cache
def _adapters() -> dict[bytes, Any]:
    from pydantic import TypeAdapter

    return {kind.__name__.encode(): TypeAdapter(kind) for kind in _KINDS}
