"""Fetching a model into the model cache."""

from dataclasses import dataclass
from typing import ClassVar

from app.library import Library
from app.progress import OnProgress, Progress
from app.task import Lane
from serving.catalogue import card
from serving.fetch import fetch, remove

__all__ = ["Fetch"]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetches a model.

    Attributes:
        model: A name of the catalogue.
    """

    lane: ClassVar[Lane] = "fetch"
    lasting: ClassVar[bool] = False
    model: str

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Fetches it, going on where an earlier try stopped."""
        path = fetch(
            self.model,
            library.settings.models,
            on_progress=lambda done, total: on_progress(Progress(self.model, "fetch", done, total)),
        )
        return f"in {path.parent}"

    def undo(self, library: Library) -> bool:
        """Removes what was fetched of it, unless all of it is there."""
        if not card(self.model).is_in(library.settings.models):
            remove(self.model, library.settings.models)
        return True

    def clear(self, library: Library) -> None:
        """An unfinished part goes with the next fetch, or with ``gistree models remove``."""
