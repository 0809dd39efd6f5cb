"""A worker of a cluster: opens the library in its own process and answers pieces of a batch."""

import pickle
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.batch.attempts import Attempts
from app.batch.questions import Row
from app.batch.run import Event, RowDone, Runner, Terms
from app.batch.tally import Tally
from app.batch.throttle import Throttle, throttle_for
from app.library import Library
from app.settings import Settings
from serving.errors import GistreeError
from serving.model import Usage

_ATTEMPTS = 3
"""At a piece, and then at each of its rows alone, on one machine."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What a worker needs to know; it is sent to it.

    Attributes:
        library: Address of the library, as ``app.place.Place.address`` has it.
        settings: What the person chose, by name; the rest is as the worker's machine has it.
        terms: How rows are asked.
        most_at_once: Rows that a worker asks at a time; 0 finds it by measuring.
        run: Name of this run; no two share one.
    """

    library: str
    settings: Mapping[str, Any]
    terms: Terms
    most_at_once: int
    run: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a worker says while it is at a piece.

    Attributes:
        event: What happened.
        line: Where a row is done, the row as a journal keeps it.
    """

    event: Event
    line: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A worker cannot go on, for a reason that the person can do something about."""

    why: str


class Outbox:
    """Takes a piece's answers, each until it is sent."""

    def __init__(self) -> None:
        self.status = Tally()
        self.lines: dict[int, Mapping[str, Any]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes one row."""
        self.lines[row["row"]] = row


class PieceWorker:
    """Answers pieces one after the other; Ray calls it in a process of its own."""

    def __init__(self, errand: Errand) -> None:
        """Opens nothing yet: a library that cannot be opened is told of by the first piece."""
        self._errand = errand
        self._library: Library | None = None
        self._throttle: Throttle | None = None
        self._attempts = Attempts(errand.run)

    def __call__(self, batch: Mapping[str, Sequence[bytes]]) -> Iterator[dict[str, list[bytes]]]:
        """What is said over the pieces of a batch of Ray Data's, each as soon as it is so.

        Args:
            batch: Column "piece": rows, pickled.

        Yields:
            Column "said": one ``Said`` or ``GaveUp``, pickled.
        """
        for piece in batch["piece"]:
            for said in self.answers(pickle.loads(piece)):
                yield {"said": [pickle.dumps(said)]}

    def answers(self, rows: Sequence[Row]) -> Iterator[Said | GaveUp]:
        """Answers a piece; a row that ends the worker every time is failed, and not tried for ever.

        Args:
            rows: The piece.
        """
        with self._attempts.of(f"piece-{rows[0].number}") as attempt:
            if attempt <= _ATTEMPTS:
                yield from self._asked(rows)
                return
            for row in rows:  # one of them is to blame
                with self._attempts.of(f"row-{row.number}") as again:
                    yield from self._asked([row]) if again <= _ATTEMPTS else _fatal(row)

    def _asked(self, rows: Sequence[Row]) -> Iterator[Said | GaveUp]:
        outbox = Outbox()
        try:
            if self._library is None:
                settings = Settings(**self._errand.settings)
                self._library = Library(self._errand.library, settings=settings)
            if self._throttle is None:
                self._throttle = throttle_for(self._library.model, self._errand.most_at_once)
            runner = Runner(self._library, outbox, self._errand.terms, self._throttle)
            for event in runner.run(rows):
                if isinstance(event, RowDone):
                    yield Said(event, outbox.lines.pop(event.row.number))
                else:
                    yield Said(event)
        except GistreeError as error:
            yield GaveUp(f"a worker on {socket.gethostname()} cannot go on: {error}")


def _fatal(row: Row) -> Iterator[Said]:
    error = (
        f"its worker, on {socket.gethostname()}, died each time that it was asked: too little "
        "memory, or a crash in what answers"
    )
    line = {"row": row.number, "id": row.id, "status": "error", "error": error}
    if row.field is not None:
        line |= {"document": row.documents[0], "field": row.field.name, "value": None}
    done = RowDone(row, "error", found=False, usage=Usage(), seconds=0.0, error=error)
    yield Said(done, line | {"question": row.question})
