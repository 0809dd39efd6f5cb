"""Reading an uploaded file into the library."""

from dataclasses import dataclass
from typing import ClassVar

from app.library import Library
from app.models import missing_models
from app.progress import OnProgress, Progress
from app.task import Lane
from app.uploads import Uploads
from serving.catalogue import card
from serving.fetch import fetch

__all__ = ["Add"]


@dataclass(frozen=True, slots=True)
class Add:
    """Reads a file into the library.

    Attributes:
        upload: The file, as ``app.uploads`` names it.
        name: What the person calls it.
        document_id: SHA-256 of its bytes.
        tags: Put on it.
    """

    lane: ClassVar[Lane] = "read"
    lasting: ClassVar[bool] = False
    upload: str
    name: str
    document_id: str
    tags: tuple[str, ...] = ()

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Adds it, with the password if there is one."""
        for model in missing_models(library.settings):
            if card(model).kind != "llm":  # on a fresh machine; it is small
                fetch(
                    model,
                    library.settings.models,
                    on_progress=lambda done, total: on_progress(
                        Progress(self.name, "fetch", done, total)
                    ),
                )
        before = {entry.id: entry for entry in library.list()}
        known = before.get(self.document_id)
        entry = library.add(
            Uploads(library.place.folder).path(self.upload),
            name=self.name,
            password=secret or None,
            tags=self.tags,
            on_progress=on_progress,
        )
        if known is not None:
            return f"was in the library already, as {known.title}"
        problems = len(library.document(entry.id).problems)
        unit = "pages" if entry.paged else "parts"
        return f"{entry.num_words:,} words, {entry.pages_read:,} of {entry.num_pages:,} {unit}" + (
            f"; {problems} {'problem' if problems == 1 else 'problems'}" if problems else ""
        )

    def undo(self, library: Library) -> bool:
        """Removes what is there of a document that is not wholly in."""
        if self.document_id not in {entry.id for entry in library.list()} and not library.discard(
            self.document_id
        ):
            return False
        self.clear(library)
        return True

    def clear(self, library: Library) -> None:
        """Removes the uploaded file; the library has a copy of its own."""
        Uploads(library.place.folder).remove(self.upload)
