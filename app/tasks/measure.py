"""Measuring how fast the language model reads on this machine."""

from dataclasses import dataclass
from typing import ClassVar

from app.doctor import measure_pace
from app.library import Library
from app.progress import OnProgress
from app.task import Lane

__all__ = ["Measure"]


@dataclass(frozen=True, slots=True)
class Measure:
    """Measures the pace of the model that the settings choose, and keeps it."""

    lane: ClassVar[Lane] = "ask"
    lasting: ClassVar[bool] = False

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Loads the model in this process and lets it read and write a little."""
        pace = measure_pace(library.settings)
        reads, writes = pace.prompt_tokens_per_s, pace.completion_tokens_per_s
        return f"reads {reads:.0f} tokens a second, writes {writes:.0f}"

    def undo(self, library: Library) -> bool:
        """A measurement that was not ended is kept nowhere."""
        return True

    def clear(self, library: Library) -> None:
        """Nothing is kept for another try."""
