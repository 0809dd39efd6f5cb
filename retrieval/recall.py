"""How far a search on the disk must look, found by trying."""

import numpy as np

from retrieval.cells import Ids
from retrieval.disk_cells import DiskCells
from retrieval.types import Vectors

WANTED = 0.97
"""Share of the ten nearest that searches with made-up queries are to find, so that those with real
ones find 0.95 or more, in small libraries too."""
_TOP = 10
_AT_ONCE = 4_096  # vectors: 6 MB as float32


def made_up_queries(sample: Vectors, count: int) -> Vectors:
    """Queries as far from everything as questions are: unit mixtures of three vectors each.

    Vectors of the library would be too easy as queries, since each lies amid its like: searches
    that find 99.8 % of their nearest find 94 % of the nearest of real questions. With mixtures of
    three it is the other way, 93 % to 98 % (``docs/decisions.md``).

    Args:
        sample: Vectors of the library, float32 [num_vectors, dim].
        count: How many queries.
    """
    rng = np.random.default_rng(count)
    mixed: Vectors = sample[rng.integers(0, len(sample), (count, 3))].sum(axis=1)
    mixed /= np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
    return mixed


def nearest(cells: DiskCells, queries: Vectors) -> Ids:
    """The true ten nearest ids of each query (fewer where there are fewer), by comparing all."""
    scores = np.zeros((len(queries), 0), np.float32)
    best = np.zeros((len(queries), 0), np.int64)
    for start in range(0, len(cells), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(cells)))
        new = queries @ cells.rows(rows).astype(np.float32).T
        top = np.argpartition(-new, min(_TOP, len(rows) - 1), axis=1)[:, :_TOP]
        scores = np.hstack([scores, np.take_along_axis(new, top, 1)])
        best = np.hstack([best, cells.ids[rows][top]])
        order = np.argsort(-scores, axis=1)[:, :_TOP]
        scores = np.take_along_axis(scores, order, 1)
        best = np.take_along_axis(best, order, 1)
    return best


def settings(cells: DiskCells, queries: Vectors) -> tuple[int, int, float]:
    """Cells to look into and candidates to compare, the fewest that find what is wanted.

    Args:
        cells: All that is to be searched.
        queries: Unit vectors, float32 [num_queries, dim].

    Returns:
        nprobe, candidates, and the recall at ten with them; where nothing reaches what is wanted,
        the most that was tried.
    """
    truth = nearest(cells, queries)
    found = 1, 400, 0.0
    for candidates in (400, 800, 1_600):
        nprobe = 1
        while found[2] < WANTED and nprobe < 2 * cells.codes.nlist:
            looked_into = min(nprobe, cells.codes.nlist)
            ids = cells.candidates(queries, candidates, nprobe=looked_into)
            # What is among the candidates is found, since those are compared exactly.
            shared = [np.isin(row, own).mean() for row, own in zip(truth, ids, strict=True)]
            found = looked_into, candidates, float(np.mean(shared))
            nprobe *= 2
    return found
