"""A batch cut into pieces: what one worker of a cluster answers before it is given more."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from app.batch.plan import about
from app.batch.questions import Row

MOST_ROWS = 32
"""Of a piece, and so the most rows that are asked again where a worker is lost."""
_PIECES_EACH = 4  # that a worker gets at least, where there are rows enough: some take longer


def room(num_rows: int, workers: int) -> int:
    """How many rows a piece of several documents may have, so that every worker gets some."""
    return max(1, min(MOST_ROWS, num_rows // (workers * _PIECES_EACH)))


def pieces(rows: Iterable[Row], *, room: int) -> Iterator[tuple[Row, ...]]:
    """Cuts rows up, those about the same documents staying together, ``MOST_ROWS`` at most.

    Args:
        rows: In the order in which they are to be asked.
        room: Documents with few rows are put together up to so many.
    """
    piece: tuple[Row, ...] = ()
    for _, same in groupby(rows, key=about):
        while part := tuple(islice(same, MOST_ROWS)):
            if piece and len(piece) + len(part) > room:
                yield piece
                piece = ()
            piece += part
    if piece:
        yield piece
