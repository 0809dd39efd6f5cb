"""In which order rows are asked: those that share a prompt's beginning one after the other."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from app.batch.questions import Row

WINDOW = 10_000
"""Rows that are held in memory to be put in order."""


def about(row: Row) -> tuple[str, ...]:
    """What rows share whose prompts may begin alike: reader and documents, in whatever order."""
    return (row.reader, *sorted(set(row.documents)))


def planned(
    rows: Iterable[Row], group: Callable[[Row], tuple[str, ...]], *, window: int = WINDOW
) -> Iterator[Row]:
    """Rows grouped by what they are about, within windows, else as they came.

    Args:
        rows: As the file has them.
        group: What rows must share for their prompts to begin alike: reader and documents.
        window: Rows that are held at a time.
    """
    rows = iter(rows)
    while part := list(islice(rows, window)):
        first: dict[tuple[str, ...], int] = {}
        for place, row in enumerate(part):
            first.setdefault(group(row), place)
        yield from sorted(part, key=lambda row: (first[group(row)], row.number))
