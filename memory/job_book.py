"""The book of jobs: what was ordered, who is at it, how far it is. Each method is a transaction.

queued ⇄ running → done            running, queued → paused → queued
→ failed → queued any but done → cancelling → (gone)
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import delete, select, update

from memory.store import Store
from memory.tables import JobRow

JobState = Literal["queued", "running", "paused", "cancelling", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work that was ordered.

    Attributes:
        id: Its number, hexadecimal.
        kind: Name of its task, in ``app.tasks``.
        name: What it is called, for example the file's name.
        work: What its task needs, as a JSON object.
        document_id: The document that it makes or changes; empty where it concerns none.
        state: "cancelling" until what was done of it is undone; then it is gone.
        not_before: It waits until then, in seconds since the epoch.
        stage: What is done now, as ``app.progress.Stage`` names it.
        done: Units of this stage that are done.
        total: Units of it in all; 0 where not known yet.
        seconds_left: Of this stage, about; None where not known yet.
        said: How it ended, in words; empty before.
        error: Class of the error that it failed with.
        attempts: How often somebody began with it.
        owner: Who is at it.
        beat: The owner's last sign of life, in seconds since the epoch.
        created_at: When it was ordered.
        changed_at: When its state last changed.
    """

    id: str
    kind: str
    name: str
    work: str
    document_id: str
    state: JobState
    not_before: float
    stage: str
    done: int
    total: int
    seconds_left: float | None
    said: str
    error: str
    attempts: int
    owner: str
    beat: float
    created_at: datetime
    changed_at: datetime


class JobBook:
    """The jobs of a library. Safe for many threads and many processes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def order(
        self, kind: str, *, name: str, work: str, document_id: str = "", not_before: float = 0.0
    ) -> Job:
        """Writes a new job down, queued."""
        now = datetime.now(UTC)
        row = JobRow(
            id=uuid.uuid4().hex,
            kind=kind,
            name=name,
            work=work,
            document_id=document_id,
            state="queued",
            not_before=not_before,
            created_at=now,
            changed_at=now,
        )
        with self._store.writing() as session:
            session.add(row)
            session.flush()
            return _job(row)

    def jobs(self) -> list[Job]:
        """All jobs, the oldest first."""
        with self._store.transaction() as session:
            rows = session.scalars(select(JobRow).order_by(JobRow.created_at, JobRow.id))
            return [_job(row) for row in rows]

    def job(self, job_id: str) -> Job | None:
        """One job; None where it is gone."""
        with self._store.transaction() as session:
            row = session.get(JobRow, job_id)
            return _job(row) if row else None

    def move(
        self,
        job_id: str,
        *,
        to: JobState,
        of: Collection[JobState],
        owned_by: str | None = None,
        **values: Any,
    ) -> bool:
        """Puts a job into another state, unless it is in none of the states ``of`` any more.

        Args:
            job_id: Which.
            to: The state.
            of: States that it may be in before.
            owned_by: Only while this owner has it.
            values: Further columns.
        """
        if to == "queued":
            values |= {"owner": "", "said": "", "error": "", "seconds_left": None}
        return self._change(job_id, of=of, owned_by=owned_by, state=to, **values)

    def claim(self, job_id: str, *, owner: str, now: float) -> bool:
        """Takes a queued job; False where somebody else was faster, or it is no longer queued."""
        return self._change(
            job_id,
            of=["queued"],
            state="running",
            owner=owner,
            beat=now,
            attempts=JobRow.attempts + 1,
            stage="",
            done=0,
            total=0,
            seconds_left=None,
        )

    def tell(
        self,
        job_id: str,
        *,
        owner: str,
        now: float,
        stage: str,
        done: int,
        total: int,
        seconds_left: float | None,
    ) -> bool:
        """Writes down how far a job is; False where it is no longer this owner's."""
        return self._hold(
            job_id,
            owner,
            beat=now,
            stage=stage,
            done=done,
            total=total,
            seconds_left=seconds_left,
        )

    def beat(self, job_id: str, *, owner: str, now: float) -> bool:
        """Gives a sign of life; False where the job is no longer this owner's."""
        return self._hold(job_id, owner, beat=now)

    def end(self, job_id: str, *, owner: str, said: str, error: str = "") -> bool:
        """Writes down how a job ended: done, or with an error failed."""
        return self._change(
            job_id,
            of=["running"],
            owned_by=owner,
            state="failed" if error else "done",
            said=said,
            error=error,
            owner="",
            seconds_left=None,
        )

    def strike(self, job_id: str, *, of: Collection[JobState]) -> bool:
        """Takes a job out of the book, unless it is in none of these states any more."""
        with self._store.writing() as session:
            gone = session.execute(
                delete(JobRow).where(JobRow.id == job_id, JobRow.state.in_(list(of)))
            )
            return bool(gone.rowcount)  # type: ignore[attr-defined]  # a CursorResult

    def _hold(self, job_id: str, owner: str, **values: Any) -> bool:
        query = update(JobRow).where(
            JobRow.id == job_id, JobRow.owner == owner, JobRow.state == "running"
        )
        with self._store.writing() as session:
            held = session.execute(query.values(**values))
            return bool(held.rowcount)  # type: ignore[attr-defined]  # a CursorResult

    def _change(
        self, job_id: str, *, of: Collection[JobState], owned_by: str | None = None, **values: Any
    ) -> bool:
        query = update(JobRow).where(JobRow.id == job_id, JobRow.state.in_(list(of)))
        if owned_by is not None:
            query = query.where(JobRow.owner == owned_by)
        with self._store.writing() as session:
            done = session.execute(query.values(changed_at=datetime.now(UTC), **values))
            return bool(done.rowcount)  # type: ignore[attr-defined]  # a CursorResult


def _job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        name=row.name,
        work=row.work,
        document_id=row.document_id,
        state=row.state,  # type: ignore[arg-type]  # only the states above are ever written
        not_before=row.not_before or 0.0,
        stage=row.stage or "",
        done=row.done or 0,
        total=row.total or 0,
        seconds_left=row.seconds_left,
        said=row.said or "",
        error=row.error or "",
        attempts=row.attempts or 0,
        owner=row.owner or "",
        beat=row.beat or 0.0,
        created_at=row.created_at,
        changed_at=row.changed_at,
    )
