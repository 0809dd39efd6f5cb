"""Answers in the making: each in a thread of its own, which no page and no browser can end.

What a turn has so far lies here for whoever looks, and in the database a second later, so that a
page that is loaded anew goes on where it was and a killed server loses next to nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.answer import Answer
from agents.steps import Drafting, Step
from app.owner import Heartbeat
from app.present import answer_json
from app.step_json import answer_documents, seen_documents, step_json
from memory.chats import Chats, Turn, TurnState
from serving.errors import GistreeError

log = logging.getLogger(__name__)

SAVED_EVERY_S = 1.0
BEAT_S = 15.0


@dataclass(frozen=True, slots=True)
class Progressing:
    """A turn that is being answered, as it is at this moment.

    Attributes:
        steps: What the reader did so far, as data.
        draft: The reply so far.
        seconds: Since the question.
    """

    steps: tuple[Mapping[str, Any], ...]
    draft: str
    seconds: float


@dataclass(slots=True)
class _Job:
    turn: Turn
    scope: Collection[str]
    started: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    steps: list[dict[str, Any]] = field(default_factory=list)
    draft: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread | None = None


class AnsweringJobs:
    """The answers that this process is at. Safe for many threads."""

    def __init__(self, chats: Chats) -> None:
        self._chats = chats
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    def start(self, turn: Turn, scope: Collection[str], read: Callable[[], Iterator[Step]]) -> None:
        """Begins to answer.

        Args:
            turn: Whose answer it is; it is in the database as running.
            scope: Ids of the documents that are asked.
            read: Gives the steps, the last of which is the answer.
        """
        job = _Job(turn, scope)
        job.thread = threading.Thread(
            target=self._run, args=(job, read), name=f"gistree-answer-{turn.id[:8]}", daemon=True
        )
        with self._lock:
            self._jobs[turn.id] = job
        job.thread.start()

    def progress(self, turn_id: str) -> Progressing | None:
        """How far a turn is; None where this process is not at it."""
        with self._lock:
            job = self._jobs.get(turn_id)
        if job is None:
            return None
        with job.lock:
            return Progressing(tuple(job.steps), job.draft, time.monotonic() - job.started)

    def stop(self, turn_id: str) -> None:
        """Ends a turn at once with what it has. The model is let go at its next word."""
        with self._lock:
            job = self._jobs.get(turn_id)
        if job is not None:
            job.stop.set()
            self._end(job, "stopped")

    def wait(self, turn_id: str, timeout_s: float) -> bool:
        """Waits until a turn has ended; False where it has not by then."""
        with self._lock:
            job = self._jobs.get(turn_id)
        if job is None or job.thread is None:
            return True
        job.thread.join(timeout_s)
        return not job.thread.is_alive()

    def close(self, timeout_s: float = 60.0) -> None:
        """Stops all, and waits for them: what they use is closed next."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            self.stop(job.turn.id)
        for job in jobs:
            if job.thread is not None:
                job.thread.join(timeout_s)

    def _run(self, job: _Job, read: Callable[[], Iterator[Step]]) -> None:
        state, answer, error = "failed", None, "the reader ended without an answer"
        try:
            with Heartbeat(lambda: self._chats.beat(job.turn.id), every_s=BEAT_S):
                answer = self._read(job, read())
            if answer is not None:
                state, error = "done", ""
        except (GistreeError, ValueError, OSError) as failure:
            error = str(failure)
        except Exception as failure:  # this thread has no caller; the person is told instead
            log.exception("answering failed turn=%s", job.turn.id)
            error = f"something in gistree failed ({type(failure).__name__}: {failure})"
        self._end(job, state, answer, error)  # type: ignore[arg-type]

    def _read(self, job: _Job, steps: Iterator[Step]) -> Answer | None:
        try:
            for step in steps:
                if job.stop.is_set():
                    return None
                if isinstance(step, Answer):
                    return step
                with job.lock:
                    if isinstance(step, Drafting):
                        job.draft += step.text
                    else:
                        job.steps.append(step_json(step))
                if time.monotonic() - job.saved > SAVED_EVERY_S:
                    job.saved = time.monotonic()
                    self._keep(job, "running")
        finally:
            close = getattr(steps, "close", None)  # a generator's: it lets the model go
            if close is not None:
                close()
        return None

    def _end(
        self, job: _Job, state: TurnState, answer: Answer | None = None, error: str = ""
    ) -> None:
        """Keeps the end of a turn: the first one that is told holds."""
        try:
            self._keep(job, state, answer, error)
        except GistreeError as failure:
            log.error("an answer could not be kept turn=%s: %s", job.turn.id, failure)
        finally:
            with self._lock:
                if state != "stopped":
                    self._jobs.pop(job.turn.id, None)

    def _keep(
        self, job: _Job, state: TurnState, answer: Answer | None = None, error: str = ""
    ) -> None:
        with job.lock:
            steps, draft = list(job.steps), job.draft
        self._chats.keep(
            job.turn.id,
            state=state,
            steps=steps,
            draft=draft if answer is None else "",
            answer=None if answer is None else answer_json(job.turn.question, answer),
            error=error,
            seen=seen_documents(steps, job.scope)
            | (answer_documents(answer) if answer is not None else set()),
        )
