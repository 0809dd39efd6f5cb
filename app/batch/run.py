"""Answering the rows of a batch: in a good order, as many at a time as pays, none of them twice."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agents.answer import Answer
from agents.fields import Value, value_of
from agents.steps import Step
from app.batch.leading import Queue
from app.batch.plan import about, planned
from app.batch.questions import Row
from app.batch.tally import Tally
from app.batch.throttle import Throttle
from app.library import Library
from app.present import answer_json
from memory.errors import LibraryError
from serving.errors import GistreeError, ModelUnavailable
from serving.model import Usage, num_at_once, overloaded_at

log = logging.getLogger(__name__)

_WAITS_S = (2.0, 5.0, 15.0, 30.0, 60.0, 120.0)
"""How long a row waits, time after time, for a server or a database that has gone away."""
_LOOKS_EVERY_S = 0.5  # whether the person who asks has been answered


@dataclass(frozen=True, slots=True)
class RowDone:
    """A row is finished and kept.

    Attributes:
        row: The row.
        status: "error" where no answer could be made; ``error`` says why.
        found: Whether the documents hold an answer.
        usage: Tokens spent on it.
        seconds: How long it took.
    """

    row: Row
    status: str
    found: bool
    usage: Usage
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model's server or the database does not answer, or a person goes first."""

    why: str
    seconds: float


Event = RowDone | Waiting


@dataclass(frozen=True, slots=True)
class Totals:
    """What a batch has come to.

    Attributes:
        rows: Rows that it has.
        finished: Rows that are kept, those of earlier runs included.
        failed: Those of them for which no answer could be made.
        usage: Tokens spent in this run.
    """

    rows: int
    finished: int
    failed: int
    usage: Usage


class _Stopped(Exception):
    """The batch was stopped; the row is as if it had never been begun."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How rows are asked; it can be sent to another process.

    Attributes:
        documents: Ids, names or titles that rows without documents of their own ask; None asks
            all.
        reader: Of rows that name none; None takes the settings' one.
        budget_tokens: Likewise; None takes the usual one.
    """

    documents: tuple[str, ...] | None = None
    reader: str | None = None
    budget_tokens: int | None = None


class Keeper(Protocol):
    """Takes answers: a ``Journal``, or what sends them to one."""

    @property
    def status(self) -> Tally:
        """Of each row that is finished, by its number."""
        ...

    def add(self, row: Mapping[str, Any]) -> None:
        """Keeps a row; see ``Journal.add``."""
        ...


@dataclass(slots=True)
class Runner:
    """Answers rows and keeps each answer.

    Attributes:
        library: Whose documents are asked.
        journal: Where answers are kept.
        terms: How rows are asked.
        throttle: How many rows at a time.
        in_order: Ask rows as they stand in the file, not grouped by document.
        waits_s: How long to wait for what has gone away, time after time.
    """

    library: Library
    journal: Keeper
    terms: Terms = Terms()
    throttle: Throttle = field(default_factory=Throttle)
    in_order: bool = False
    waits_s: tuple[float, ...] = _WAITS_S
    _stop: threading.Event = field(default_factory=threading.Event)
    _notices: list[Waiting] = field(default_factory=list)
    _heard_at: float = field(default_factory=time.monotonic)

    def run(self, rows: Iterable[Row]) -> Iterator[Event]:
        """Answers the rows that the journal does not have. Closing the iterator stops the work.

        Raises:
            StorageFull: the answers cannot be kept; those before are.
            ModelUnavailable: the model's server has not come back.
            LibraryError: the library's database has not come back.
        """
        open_rows = (row for row in rows if row.number not in self.journal.status)
        ordered = open_rows if self.in_order else planned(open_rows, about)
        together = num_at_once(self.library.model) > 1
        queue = Queue(iter(ordered), one_ahead=together and not self.in_order)
        running: set[Future[RowDone]] = set()
        with ThreadPoolExecutor(self.throttle.most, thread_name_prefix="batch") as pool:
            try:
                while True:
                    row = queue.take() if len(running) < self.throttle.limit else None
                    if row is not None:
                        running.add(pool.submit(self._answer, row))
                    elif running:
                        yield from self._finished(running, queue)
                    else:
                        break
            finally:
                self._stop.set()
                for future in running:
                    future.cancel()

    def _finished(self, running: set[Future[RowDone]], queue: Queue) -> Iterator[Event]:
        """Waits a little for rows that are done, and takes them out."""
        done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
        while self._notices:
            yield self._notices.pop(0)
            self.throttle.restart()  # the wait says nothing about how many rows pay
        for future in done:
            running.discard(future)
            event = future.result()
            queue.done(event.row)
            yield event
            self.throttle.finished(event.usage.prompt_tokens + event.usage.completion_tokens + 1)
        if overloaded_at(self.library.model) > self._heard_at:
            self._heard_at = time.monotonic()
            self.throttle.overloaded()

    def _answer(self, row: Row) -> RowDone:
        begun = time.perf_counter()
        answer, value, error = None, Value(None), ""
        for pause in (*self.waits_s, None):
            try:
                answer = self._read(row)
                if row.field is not None:
                    value = value_of(self.library.model, row.field, answer)
                    error = value.why
                break
            except (ModelUnavailable, LibraryError) as gone:
                if pause is None:
                    raise
                self._notices.append(Waiting(str(gone), pause))
                if isinstance(gone, ModelUnavailable):
                    self.throttle.overloaded()
                log.warning("waits %s s: %s", pause, gone)
                if self._stop.wait(pause):
                    raise _Stopped from gone
            except _Stopped:
                raise
            except (GistreeError, ValueError) as failure:
                error = str(failure) or type(failure).__name__
                break
            except Exception as fault:  # of ours, or of a library's: it stops no other row
                log.exception("a row failed", extra={"row": row.number})
                error = f"{type(fault).__name__}: {fault}"
                break
        line: dict[str, Any] = {"row": row.number, "id": row.id, "status": "ok", "error": error}
        if answer is None:
            line |= {"question": row.question}
        else:
            answer = replace(answer, usage=answer.usage + value.usage)
            line |= answer_json(row.question, answer)
        if error:
            line["status"] = "error"
        if row.field is not None:
            line |= {"document": row.documents[0], "field": row.field.name, "value": value.value}
        self.journal.add(line)
        log.info(
            "row",
            extra={
                "row": row.number,
                "status": line["status"],
                "seconds": round(time.perf_counter() - begun, 3),
            },
        )
        return RowDone(
            row=row,
            status=line["status"],
            found=answer is not None and answer.found,
            usage=answer.usage if answer else Usage(),
            seconds=time.perf_counter() - begun,
            error=error,
        )

    def _stand_back(self) -> None:
        """Waits while a person does, unless the model takes many requests at a time anyway."""
        library = self.library
        if not library.settings.batches_stand_back or num_at_once(library.model) > 1:
            return
        told = False
        while library.courtesy.somebody_asks():
            if not told:
                self._notices.append(Waiting("somebody is being answered", _LOOKS_EVERY_S))
                told = True
            if self._stop.wait(_LOOKS_EVERY_S):
                raise _Stopped

    def _read(self, row: Row) -> Answer:
        # Nobody looks on: a part of a name could be another document than is meant.
        # In one order always: rows about the same documents share their prompts' beginning.
        own = sorted({self.library.show(name, exact=True).id for name in row.documents})
        self._stand_back()
        steps: Iterator[Step] = self.library.read(
            row.question,
            documents=own or self.terms.documents,
            reader=row.reader or self.terms.reader,
            budget_tokens=row.budget_tokens or self.terms.budget_tokens,
            unattended=True,
        )
        for step in steps:
            if self._stop.is_set():
                raise _Stopped
            if isinstance(step, Answer):
                return step
            self._stand_back()
        raise TypeError(f"the reader {row.reader or self.terms.reader!r} ended without an answer")
