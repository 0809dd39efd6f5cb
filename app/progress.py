"""Progress of long work, as data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["copy", "read", "embed", "wait", "fetch", "ask", "done"]

UNITS = {"copy": "bytes", "read": "pages", "embed": "chunks", "fetch": "bytes", "ask": "questions"}
"""What is counted in each stage."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work on one document is.

    Attributes:
        name: Of the document.
        stage: copy (bytes), read (pages), embed (chunks), wait (another process is at it), fetch
            (bytes of a model), ask (questions of a batch), done.
        done: Units done.
        total: Units in all; 0 where not known yet.
    """

    name: str
    stage: Stage
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        units = UNITS.get(self.stage, "")
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.name}: {self.stage} {self.done:,}{of} {units}".rstrip()


OnProgress = Callable[[Progress], None]


def silent(_progress: Progress) -> None:
    """Tells nobody."""
