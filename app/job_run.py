"""Doing one job: its task is run, its progress written down, its end too."""

import logging
import time

from app.estimate import Estimate
from app.library import Library
from app.owner import Heartbeat
from app.progress import Progress
from app.task import unpacked
from memory.job_book import Job
from serving.errors import GistreeError

log = logging.getLogger(__name__)

_BEAT_S = 10.0
_BETWEEN_S = 0.25  # between two notes of progress: each is a transaction


def run_job(library: Library, job: Job, *, owner: str, secret: str) -> bool:
    """Does a job that this owner has claimed.

    Failures that gistree explains are written down; a fault of ours too, and logged.

    Returns:
        Whether it is done.
    """
    book = library.jobs.book
    note = _Notes(library, job, owner)
    error = ""
    try:
        with Heartbeat(lambda: book.beat(job.id, owner=owner, now=time.time()), every_s=_BEAT_S):
            task = unpacked(job.kind, job.work)
            said = task.run(library, note, secret)
    except (GistreeError, OSError, ValueError) as failure:
        said, error = str(failure), type(failure).__name__
        log.info("job %s kind=%s failed: %s", job.id, job.kind, failure)
    except Exception as fault:
        said = f"{type(fault).__name__}: {fault}; the server's log says more, please report it"
        error = type(fault).__name__
        log.exception("job %s kind=%s: a fault of gistree", job.id, job.kind)
    ended = book.end(job.id, owner=owner, said=said, error=error)
    if ended and not error:
        task.clear(library)
    return ended and not error


class _Notes:
    """Writes progress down: each new stage, else now and then."""

    def __init__(self, library: Library, job: Job, owner: str) -> None:
        self._book = library.jobs.book
        self._job, self._owner = job, owner
        self._estimate = Estimate()
        self._stage, self._at = "", 0.0

    def __call__(self, progress: Progress) -> None:
        left = self._estimate.seconds_left(progress)
        now = time.monotonic()
        if progress.stage == self._stage and now - self._at < _BETWEEN_S:
            return
        self._stage, self._at = progress.stage, now
        self._book.tell(
            self._job.id,
            owner=self._owner,
            now=time.time(),
            stage=progress.stage,
            done=progress.done,
            total=progress.total,
            seconds_left=left,
        )
