"""A batch cut into pieces: what one worker of a cluster answers before it is given more."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from app.batch.questions import Row

MOST_ROWS = 32
"""Of a piece, and so the most rows that are asked again where a worker is lost."""


def about(row: Row) -> tuple[str, ...]:
    """What rows of one piece share, so that their prompts may begin alike: reader and documents."""
    return (row.reader, *row.documents)


def pieces(rows: Iterable[Row], *, most: int = MOST_ROWS) -> Iterator[tuple[Row, ...]]:
    """Rows that follow each other and are about the same documents, so many at most together.

    Args:
        rows: In the order in which they are to be asked.
        most: Rows of a piece.
    """
    for _, same in groupby(rows, key=about):
        while piece := tuple(islice(same, most)):
            yield piece
