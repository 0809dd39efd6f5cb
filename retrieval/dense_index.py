"""Nearest vectors: FAISS behind one small class that grows with what it holds."""

import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retrieval.background import begun
from retrieval.cells import PER_CELL, Ids, contents, flat, forget, learnt, num_cells, selector
from retrieval.cores import usable_cores
from retrieval.gpu_mirror import GpuMirror
from retrieval.types import Vectors

_log = logging.getLogger(__name__)

FLAT_MOST = 50_000
"""Past so many vectors cells pay: comparing every one of them takes 3 to 10 ms on one core."""
REGROW = 4
"""Cells are learnt anew once there are so many times more or fewer vectors than at their making."""
_SEARCHED = 8  # one cell in so many is searched: recall@10 of .99 at 100,000 (``bench/query.py``)
_AT_ONCE = 2_000  # changes that are taken over in one go while searches wait: some milliseconds


class DenseIndex:
    """Unit vectors by inner product: exact while few, then in cells. Half a float a dimension.

    Up to ``FLAT_MOST`` vectors every one is compared. Beyond, they lie in cells (an inverted file),
    the nearest cells are searched, and the cells are learnt anew whenever the index has grown or
    shrunk fourfold. It never needs telling, and nothing is lost in the moves: vectors are float16
    throughout, which leaves rankings as they are and is twice as fast as float32. (Measured beside
    it: a byte per dimension costs a point of recall; a graph, HNSW, takes five times as long to
    build, twice the memory, and cannot forget a vector.)

    Cells are learnt beside the work (``background``): searches, additions and removals go
    on with what there is, and the new cells take its place once they hold the same.

    Every method may be called from several threads. Where FAISS has a GPU, unfiltered searches of
    cells go to a mirror of the index there (see ``retrieval/gpu_mirror.py``).

    Args:
        dim: Length of a vector.
        flat_most: Most vectors that are searched exactly.
    """

    def __init__(self, dim: int, *, flat_most: int = FLAT_MOST) -> None:
        self.dim = dim
        self._flat_most = flat_most
        self._lock = threading.Lock()
        self._index: Any = flat(dim)
        self._learnt_from = 0
        self._abandoned = False
        self._learner: Future[None] | None = None
        self._quiet = range(0)  # sizes at which learning is not tried again after a failure
        # What has come (a vector) and gone (None) since the learner began to look.
        self._changes: dict[int, NDArray[np.float16] | None] = {}
        self._mirror = GpuMirror.where_there_is_one()

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def kind(self) -> str:
        """Either "flat" or "cells"."""
        return "cells" if self._learnt_from else "flat"

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """Puts vectors in; ids that are there already must be removed before.

        Args:
            ids: [num_vectors], not negative.
            vectors: Unit vectors, float32 [num_vectors, dim].

        Raises:
            ValueError: the shapes do not fit each other or the index.
        """
        if vectors.shape != (len(ids), self.dim):
            raise ValueError(
                f"needed vectors of shape ({len(ids)}, {self.dim}), got {vectors.shape}"
            )
        with self._lock:
            self._index.add_with_ids(np.ascontiguousarray(vectors), ids)
            if self._learner:
                self._changes.update(zip(ids.tolist(), vectors.astype(np.float16), strict=True))
            self._changed()

    def remove(self, ids: Ids) -> None:
        """Takes vectors out; unknown ids do nothing."""
        with self._lock:
            if len(ids) and len(self):
                forget(self._index, ids)
                if self._learner:
                    self._changes.update(dict.fromkeys(ids.tolist()))
                self._changed()

    def search(
        self, vectors: Vectors, top_k: int, *, only: Ids | None = None
    ) -> tuple[Vectors, Ids]:
        """The nearest vectors of each query, the nearest first.

        Args:
            vectors: Unit vectors of queries, float32 [num_queries, dim].
            top_k: Most results a query.
            only: Searches these ids alone, exactly where they are few; unknown ones do nothing.

        Returns:
            Scores, float32 [num_queries, at most top_k], and ids of the same shape, -1 where a
            query has no further result.
        """
        import faiss as typed_faiss

        faiss: Any = typed_faiss  # its types know only the pointers beneath these classes
        top_k = min(top_k, len(self) if only is None else len(only))
        if top_k < 1:
            empty = np.zeros((len(vectors), 0))
            return empty.astype(np.float32), empty.astype(np.int64)
        queries = np.ascontiguousarray(vectors, np.float32)
        with self._lock:
            options: dict[str, Any] = {}
            bitmap = None
            if only is not None:
                bitmap, options["sel"] = selector(only)
            # Threads that have nothing to do spin and steal the time of those that have.
            faiss.omp_set_num_threads(1 if len(queries) == 1 else usable_cores())
            make = faiss.SearchParameters
            if self._learnt_from:
                sought = len(self) if only is None else len(only)
                thinning = max(len(self), self._learnt_from) / sought
                options["nprobe"] = _cells_searched(self._index.nlist, thinning)
                make = faiss.SearchParametersIVF
            if self._mirror and self._learnt_from and only is None:
                found = self._mirror.search(self._index, queries, top_k, options["nprobe"])
            else:
                found = self._index.search(queries, top_k, params=make(**options))
            del bitmap
        return cast(tuple[Vectors, Ids], found)

    def write(self, file: Path) -> int:
        """Writes the index to a file; gives what ``learnt_from`` is of what it wrote."""
        import faiss

        with self._lock:
            faiss.write_index(self._index, str(file))
            return self._learnt_from

    @classmethod
    def read(cls, file: Path, *, learnt_from: int, flat_most: int = FLAT_MOST) -> "DenseIndex":
        """An index as it was written.

        Args:
            file: What ``write`` wrote.
            learnt_from: The property of that name at the time.
            flat_most: As for the constructor.

        Raises:
            RuntimeError: the file is damaged.
        """
        import faiss

        inner = faiss.read_index(str(file))
        index = cls(inner.d, flat_most=flat_most)
        index._index, index._learnt_from = inner, learnt_from
        with index._lock:
            index._changed()
        return index

    @property
    def learnt_from(self) -> int:
        """How many vectors there were when the cells were learnt; 0 while there are none."""
        return self._learnt_from

    def contents(self) -> Iterator[tuple[Ids, NDArray[np.float16]]]:
        """All ids and vectors, part by part; see ``cells.contents`` for changes meanwhile."""
        with self._lock:
            index = self._index
        return contents(index, self._lock)

    def settle(self) -> None:
        """Waits until cells that are being learnt are in use."""
        while learner := self._learner:
            learner.result()

    def abandon(self) -> None:
        """Gives a GPU's memory back; cells that are being learnt are given up, without waiting."""
        self._abandoned = True
        if self._mirror:
            self._mirror.close()

    def close(self) -> None:
        """Waits for cells that are being learnt, and gives a GPU's memory back."""
        self.settle()
        if self._mirror:
            self._mirror.close()

    def _changed(self) -> None:
        """After a change: has the kind made that fits the size. Needs the lock."""
        if self._mirror:
            self._mirror.forget()
        count, before = len(self), self._learnt_from
        misfit = count > max(self._flat_most, REGROW * before) or count * REGROW < before
        if misfit and count not in self._quiet and self._learner is None:
            self._learner = begun(self._learn)

    def _learn(self) -> None:
        """Makes the kind that fits what is there, fills it, and puts it in use."""
        with self._lock:  # it may have waited for its turn, and more may have come
            old, count, self._changes = self._index, len(self), {}
        self._quiet = range(count - count // REGROW, count + count // REGROW)  # should this fail
        try:
            if self._abandoned:
                return
            fresh = self._fitting(old, count)
            for ids, vectors in contents(old, self._lock):
                if self._abandoned:
                    return
                fresh.add_with_ids(vectors.astype(np.float32), ids)
            while self._index is old:
                with self._lock:
                    changes, self._changes = self._changes, {}
                    if len(changes) <= _AT_ONCE:
                        _take_over(fresh, changes)
                        self._index, self._learnt_from = fresh, count * hasattr(fresh, "nlist")
                        changes, self._quiet = {}, range(0)
                _take_over(fresh, changes)
        except (RuntimeError, MemoryError) as failure:  # FAISS raises RuntimeErrors
            _log.warning("%d vectors were not laid in cells: %s", count, failure)
        finally:
            with self._lock:
                self._learner, self._changes = None, {}
                if not self._abandoned:
                    self._changed()  # more may have come meanwhile than these cells are for

    def _fitting(self, old: Any, count: int) -> Any:
        """An empty index for so many vectors; cells are learnt from a sample of the old one's."""
        wanted, rng = num_cells(count), np.random.default_rng(count)
        sample = [np.zeros((0, self.dim), np.float16)]
        if count > self._flat_most:
            for ids, vectors in contents(old, self._lock):
                sample.append(vectors[rng.random(len(ids)) < PER_CELL * wanted / count])
        drawn = np.concatenate(sample).astype(np.float32)
        if not len(drawn):
            return flat(self.dim)
        # One core is left free, so that searches stay as fast as they are.
        spare = max(1, usable_cores() - 1)
        return learnt(drawn, num_cells=min(wanted, len(drawn)), num_threads=spare)


def _cells_searched(cells: int, thinning: float) -> int:
    """How many cells a query looks into; all of them where only a few vectors count."""
    return min(cells, max(1, round(cells / _SEARCHED * thinning)))


def _take_over(index: Any, changes: Mapping[int, NDArray[np.float16] | None]) -> None:
    """What has come and gone meanwhile; some of it may have been seen already."""
    if not changes:
        return
    forget(index, np.fromiter(changes, np.int64, len(changes)))
    there = {number: vector for number, vector in changes.items() if vector is not None}
    if there:
        vectors = np.stack(list(there.values())).astype(np.float32)
        index.add_with_ids(vectors, np.fromiter(there, np.int64, len(there)))
