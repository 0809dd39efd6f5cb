"""The foreman: has a library's jobs done, each lane by a process of its own.

To pause or cancel a job is to kill its process: documents are taken in so that a kill at any moment
leaves nothing half done (``memory/intake.py``), so no step needs to ask whether it should go on.
"""

import logging
import threading
import time
from typing import Self

from app.job_run import run_job
from app.library import Library
from app.owner import is_dead, new_owner
from app.task import Lane, lane_of
from app.worker_process import WorkerProcess
from memory.job_book import Job
from serving.errors import GistreeError

log = logging.getLogger(__name__)

_TICK_S = 0.25
_TICK_IDLE_S = 1.0
_IDLE_S = 20.0  # a process without work is kept so long
_STALE_S = 120.0
_TIDY_S = 3600.0
MOST_ATTEMPTS = 3


class Foreman:
    """Watches the book of jobs from a thread of its own. Use it in a ``with`` block, or stop it.

    Several servers may each have one over the same library: a job is claimed by one of them.
    """

    def __init__(self, library: Library) -> None:
        """Does nothing yet.

        Args:
            library: Its jobs are done; a process that does them opens it anew.
        """
        self._library = library
        self._jobs = library.jobs
        self._workers: dict[Lane, WorkerProcess] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._tidied = 0.0

    def __enter__(self) -> Self:
        """Starts."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops."""
        self.stop()

    def start(self) -> None:
        """Begins to have jobs done."""
        if self._thread is None and not self._library.read_only:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="gistree-foreman", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends all work; what is at work now goes on when a foreman starts again."""
        self._stop.set()
        self._jobs.changed.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for worker in self._workers.values():
            worker.kill()
            self._give_back(worker)
        self._workers.clear()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._jobs.changed.clear()
            try:
                busy = self.tick()
            except (GistreeError, OSError) as error:  # a full disk, say: it may pass
                log.warning("jobs are held up: %s", error)
                busy = False
            self._jobs.changed.wait(_TICK_S if busy else _TICK_IDLE_S)

    def tick(self) -> bool:
        """Looks once at everything; returns whether something is at work or waits."""
        if time.monotonic() - self._tidied > _TIDY_S or not self._tidied:
            self._tidied = time.monotonic()
            self._jobs.tidy()
        self._library.rest(self._library.settings.keep_model_s)
        self._look_after_workers()
        jobs = self._jobs.list()
        for job in jobs:
            if job.state == "running" and self._abandoned(job):
                # Whoever had it died with its server, which says nothing about the job.
                self._jobs.book.move(
                    job.id,
                    to="queued",
                    of=["running"],
                    owned_by=job.owner,
                    attempts=job.attempts - 1,
                )
            elif job.state == "cancelling":
                self._jobs.settle(job.id)
        for job in self._jobs.list():
            if job.state == "queued" and job.not_before <= time.time():
                self._begin(job)
        return any(job.state in ("queued", "running", "cancelling") for job in jobs)

    def _look_after_workers(self) -> None:
        for lane, worker in list(self._workers.items()):
            job = self._jobs.get(worker.job_id) if worker.job_id else None
            # Where the job has ended, the process is about to say that it is idle.
            unwanted = worker.job_id and (
                job is None or job.state != "running" or job.owner != worker.owner
            )
            unwanted = unwanted and (job is None or job.state not in ("done", "failed"))
            if worker.ended or unwanted:
                worker.kill()
                self._give_back(worker)
                del self._workers[lane]
            elif not worker.job_id and time.monotonic() - worker.idle_since > _IDLE_S:
                worker.release()
                del self._workers[lane]

    def _begin(self, job: Job) -> None:
        lane = lane_of(job.kind)
        if lane == "here":
            owner = new_owner()
            if self._jobs.book.claim(job.id, owner=owner, now=time.time()) and run_job(
                self._library, job, owner=owner, secret=""
            ):
                self._jobs.dismiss(job.id)
            return
        worker = self._workers.get(lane)
        if worker is not None and worker.job_id:
            return
        if worker is None or worker.ended:
            worker = self._workers[lane] = WorkerProcess(
                self._library.place.address, self._library.settings
            )
        owner = worker.new_owner()
        if self._jobs.book.claim(job.id, owner=owner, now=time.time()):
            worker.hand_over(job, owner=owner, secret=self._jobs.take_secret(job.id))

    def _abandoned(self, job: Job) -> bool:
        return is_dead(job.owner) or time.time() - job.beat > _STALE_S

    def _give_back(self, worker: WorkerProcess) -> None:
        """What an ended process was at goes back into the queue."""
        job = self._jobs.get(worker.job_id) if worker.job_id else None
        if job is None or job.state != "running" or job.owner != worker.owner:
            return
        if job.attempts < MOST_ATTEMPTS or self._stop.is_set():
            self._jobs.book.move(job.id, to="queued", of=["running"], owned_by=job.owner)
            return
        self._jobs.book.end(
            job.id,
            owner=job.owner,
            said=f"the process at work on it ended {job.attempts} times before it was done, "
            "perhaps for want of memory; close other programs and try again",
            error="WorkerDied",
        )
