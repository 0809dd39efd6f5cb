"""Work in the background: ordered here, kept in the library's book of jobs, done by a foreman.

A job belongs to the library, not to a page or a process: it goes on when a page is reloaded, is
seen from a second one, and is taken up again after a crash.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.owner import is_dead
from app.task import packed, unpacked
from app.uploads import Upload, Uploads
from memory.job_book import Job, JobBook
from serving.plugins import load

if TYPE_CHECKING:
    from app.library import Library

_BLOCK_BYTES = 1 << 20
UNDO_S = 10.0
"""How long a deletion waits, so that it can be taken back."""


class Jobs:
    """The jobs of a library. Several threads and processes may use it at a time."""

    def __init__(self, library: "Library", book: JobBook) -> None:
        self._library = library
        self.book = book
        self.changed = threading.Event()
        """Set when something was ordered or changed here, for a foreman of this process."""
        self._secrets: dict[str, str] = {}

    # ---- ordering --------------------------------------------------------------------------

    def add(self, upload: Upload, *, tags: Sequence[str] = ()) -> Job:
        """Has an uploaded file read into the library."""
        return self.order(
            "add",
            name=upload.name,
            document_id=upload.digest,
            upload=upload.id,
            tags=tuple(tags),
        )

    def add_file(self, path: Path, *, name: str | None = None, tags: Sequence[str] = ()) -> Job:
        """Has a file of this machine read into the library; a copy of it waits for that.

        Raises:
            OSError: it cannot be read, or the copy not be written.
        """
        with path.open("rb") as file:
            blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
            upload = Uploads(self._library.place.folder).receive(name or path.name, blocks)
        return self.add(upload, tags=tags)

    def delete(self, document: str, *, wait_s: float = UNDO_S) -> Job:
        """Has a document deleted in a moment; ``cancel`` takes it back until then."""
        entry = self._library.show(document)
        for job in self.list():
            if job.kind == "delete" and job.document_id == entry.id and job.state == "queued":
                return job
        return self.order(
            "delete", name=entry.title, document_id=entry.id, not_before=time.time() + wait_s
        )

    def fetch(self, model: str) -> Job:
        """Has a model fetched into the model cache; once, however often it is asked for."""
        return self._once("fetch", model, model=model)

    def measure(self) -> Job:
        """Has it measured how fast the language model reads here; once at a time."""
        return self._once("measure", "the pace of the language model")

    def _once(self, kind: str, name: str, **work: Any) -> Job:
        for job in self.list():
            if (job.kind, job.name) == (kind, name) and job.state in ("queued", "running"):
                return job
        return self.order(kind, name=name, **work)

    def order(
        self, kind: str, *, name: str, document_id: str = "", not_before: float = 0.0, **work: Any
    ) -> Job:
        """Orders a job of any kind.

        Args:
            kind: A task of ``app.tasks``.
            name: What the person calls it.
            document_id: The document that it is about, if any.
            not_before: It waits until then, in seconds since the epoch.
            work: Further fields of the task.
        """
        task = load("app.tasks", kind)
        fields = {"name": name, "document_id": document_id} | work
        known = task.__dataclass_fields__
        made = task(**{field: value for field, value in fields.items() if field in known})
        job = self.book.order(
            kind, name=name, work=packed(made), document_id=document_id, not_before=not_before
        )
        self.changed.set()
        return job

    # ---- looking ---------------------------------------------------------------------------

    def list(self) -> tuple[Job, ...]:
        """All jobs, the oldest first."""
        return tuple(self.book.jobs())

    def get(self, job_id: str) -> Job | None:
        """One job; None where it is gone."""
        return self.book.job(job_id)

    # ---- changing --------------------------------------------------------------------------

    def pause(self, job_id: str) -> bool:
        """Stops a job; what is done stays."""
        return self._told(self.book.move(job_id, to="paused", of=["queued", "running"]))

    def resume(self, job_id: str) -> bool:
        """Lets a paused job go on."""
        return self._told(self.book.move(job_id, to="queued", of=["paused"], attempts=0))

    def retry(self, job_id: str, *, password: str = "") -> bool:
        """Tries a failed job again.

        Args:
            job_id: Which.
            password: For an encrypted file; it is kept in memory only, until the job has ended.
        """
        if password:
            self._secrets[job_id] = password
        return self._told(self.book.move(job_id, to="queued", of=["failed"], attempts=0))

    def cancel(self, job_id: str) -> bool:
        """Ends a job and takes back what was done of it; then it is gone."""
        if not self.book.move(
            job_id, to="cancelling", of=["queued", "running", "paused", "failed"]
        ):
            return False
        self.settle(job_id)
        return self._told(True)

    def dismiss(self, job_id: str) -> bool:
        """Takes a job that has ended out of the list, with the results that it may have."""
        job = self.book.job(job_id)
        if job is None or not self.book.strike(job_id, of=["done", "failed"]):
            return False
        task = unpacked(job.kind, job.work)
        task.clear(self._library)
        if task.lasting:
            task.undo(self._library)
        return self._told(True)

    def settle(self, job_id: str) -> None:
        """Undoes a cancelled job, unless somebody is still at it."""
        job = self.book.job(job_id)
        if job is None or job.state != "cancelling" or (job.owner and not is_dead(job.owner)):
            return
        if unpacked(job.kind, job.work).undo(self._library):
            self._secrets.pop(job_id, None)
            self.book.strike(job_id, of=["cancelling"])

    def tidy(self, *, done_for_s: float = 86_400.0) -> None:
        """Removes jobs that were done long ago, and uploads that nobody waits for."""
        for job in self.list():
            old = time.time() - job.changed_at.timestamp() > done_for_s
            if job.state == "done" and old and not unpacked(job.kind, job.work).lasting:
                self.dismiss(job.id)
        known = {
            getattr(unpacked(job.kind, job.work), "upload", "")
            for job in self.list()
            if job.state != "done"
        }
        Uploads(self._library.place.folder).sweep(known)

    def take_secret(self, job_id: str) -> str:
        """The password that was given for a job, once; empty for none."""
        return self._secrets.pop(job_id, "")

    def _told(self, changed: bool) -> bool:
        if changed:
            self.changed.set()
        return changed
