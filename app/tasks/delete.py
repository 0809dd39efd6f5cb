"""Deleting a document; the job waits a moment, so that it can be taken back."""

from dataclasses import dataclass
from typing import ClassVar

from app.library import Library
from app.progress import OnProgress
from app.task import Lane
from memory.errors import DocumentNotFound

__all__ = ["Delete"]


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes a document.

    Attributes:
        document_id: Which.
    """

    lane: ClassVar[Lane] = "here"
    lasting: ClassVar[bool] = False
    document_id: str

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Deletes it; one that is gone already is as good."""
        try:
            library.delete(self.document_id)
        except DocumentNotFound:
            return "was gone already"
        return "deleted"

    def undo(self, library: Library) -> bool:
        """Before it ran there is nothing to undo, and after it nothing can be."""
        return True

    def clear(self, library: Library) -> None:
        """Nothing is kept for it."""
