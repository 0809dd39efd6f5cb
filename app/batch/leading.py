"""Which row is begun next where several are at work: of what shares a beginning, one goes ahead.

A server that batches finds a prompt's beginning in its cache once some row has been through it.
Rows that start together each compute it, so the first row about some documents goes alone while
rows about others fill the server; those that wait for it follow all at once.
"""

from collections import deque
from collections.abc import Iterator

from app.batch.plan import about
from app.batch.questions import Row

_MOST_HELD = 1_000
"""Rows that are held back at a time, so that a long file is not read into memory."""


class Queue:
    """Hands rows out; used by one thread."""

    def __init__(self, rows: Iterator[Row], *, one_ahead: bool) -> None:
        """Reads nothing yet.

        Args:
            rows: In the order in which they are to be asked.
            one_ahead: Whether a first row goes alone; else rows are handed out as they come. A
                model that computes one request at a time needs no such care.
        """
        self._rows = rows
        self._one_ahead = one_ahead
        self._held: dict[tuple[str, ...], list[Row]] = {}  # by what a row at work is the first of
        self._num_held = 0
        self._ready: deque[Row] = deque()
        self._read: set[tuple[str, ...]] = set()

    def take(self) -> Row | None:
        """The next row; None where none is left, or all that are left wait for one at work."""
        if self._ready:
            return self._ready.popleft()
        while self._num_held < _MOST_HELD:
            row = next(self._rows, None)
            if row is None or not self._one_ahead:
                return row
            group = about(row)
            if group in self._read:
                return row
            if group not in self._held:
                self._held[group] = []
                return row
            self._held[group].append(row)
            self._num_held += 1
        return None

    def done(self, row: Row) -> None:
        """A row has ended; those that waited for it may begin."""
        group = about(row)
        if group in self._held:
            followers = self._held.pop(group)
            self._num_held -= len(followers)
            self._ready.extend(followers)
            self._read.add(group)
