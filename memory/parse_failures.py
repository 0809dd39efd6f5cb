"""Why a parse worker did not finish, in words for the person."""

import signal
from dataclasses import dataclass

from memory.errors import DocumentError, DocumentTooLarge, UnreadableDocument
from memory.parse_process import Limits, ParseProcess
from memory.wire import Failed
from serving.errors import MissingExtra

_ANEW = "open it in another program and save it anew, or add it in another format"
_SPLIT = "split it into parts, or add it in another format"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file, or the rest of it, was not read.

    Attributes:
        what: What happened.
        remedy: What the person can do.
        kind: The error, where nothing was read.
        told: The parser's own error.
    """

    what: str
    remedy: str
    kind: type[DocumentError] = UnreadableDocument
    told: DocumentError | MissingExtra | None = None

    @property
    def is_final(self) -> bool:
        """Whether it voids what came before: the parser itself says that it cannot be read."""
        return self.told is not None

    def error(self, name: str) -> DocumentError | MissingExtra:
        """The error to raise for the document of that name."""
        return self.told or self.kind(f"{name!r} could not be read: {self.what}; {self.remedy}")


def explain(last: Failed | None, process: ParseProcess, limits: Limits) -> Failure:
    """Why a worker that has ended did not finish.

    Args:
        last: Its last word, if it had one.
        process: The worker.
        limits: What it was allowed.
    """
    memory = f"reading it takes more than {limits.memory_bytes / 2**30:.1f} GB of memory"
    match process.ended_for:
        case "memory":
            return Failure(memory, _SPLIT, DocumentTooLarge)
        case "stall":
            return Failure(f"its parser made no progress for {limits.stall_s:g} seconds", _ANEW)
        case "time":
            return Failure(f"reading it takes more than {limits.total_s:g} seconds", _SPLIT)
        case "output":
            return Failure(
                f"it holds more than {limits.output_bytes:,} bytes of text",
                _SPLIT,
                DocumentTooLarge,
            )
        case "garbled":
            return Failure("its parser broke down and sent what is no text", _ANEW)
    if last is not None:
        if last.kind == "MemoryError":
            return Failure(memory, _SPLIT, DocumentTooLarge)
        if (told := last.error()) is not None:
            return Failure(last.message, "", told=told)
        return Failure(f"its parser failed ({last.kind}: {last.message[:300]})", _ANEW)
    if process.signal == signal.SIGKILL:
        what = "the system ended its parser, most likely because memory ran out"
        return Failure(what, "close other programs and try again, or " + _SPLIT)
    if process.signal:
        words = signal.strsignal(process.signal) or f"signal {process.signal}"
        return Failure(f"its parser crashed ({words.lower()})", _ANEW)
    return Failure("its parser ended without a word", _ANEW)
