"""Nearest vectors: FAISS behind one small class that grows with what it holds."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retrieval.cores import usable_cores
from retrieval.gpu_mirror import GpuMirror
from retrieval.types import Vectors

Ids = NDArray[np.int64]

FLAT_MOST = 50_000
"""Past so many vectors cells pay: comparing every one of them takes 3 to 10 ms on one core."""
REGROW = 4
"""Cells are learnt anew once there are so many times more or fewer vectors than at their making."""
_PER_CELL = 50  # vectors to learn a cell from
_SEARCHED = 8  # one cell in so many is searched: recall@10 of .99 at 100,000 (``bench/query.py``)


class DenseIndex:
    """Unit vectors by inner product: exact while few, then in cells. Half a float a dimension.

    Up to ``FLAT_MOST`` vectors every one is compared. Beyond, they lie in cells (an inverted file),
    the nearest cells are searched, and the cells are learnt anew whenever the index has grown or
    shrunk fourfold. It never needs telling, and nothing is lost in the moves: vectors are float16
    throughout, which leaves rankings as they are and is twice as fast as float32. (Measured beside
    it: a byte per dimension costs a point of recall; a graph, HNSW, takes five times as long to
    build, twice the memory, and cannot forget a vector.)

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
        self._index: Any = _flat(dim)
        self._learnt_from = 0
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
            self._settle()

    def remove(self, ids: Ids) -> None:
        """Takes vectors out; unknown ids do nothing."""
        with self._lock:
            if len(ids) and len(self):
                bitmap, selector = _selector(ids)
                self._index.remove_ids(selector)
                del bitmap
                self._settle()

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
                bitmap, options["sel"] = _selector(only)
            # Threads that have nothing to do spin and steal the time of those that have.
            faiss.omp_set_num_threads(1 if len(queries) == 1 else usable_cores())
            make = faiss.SearchParameters
            if self._learnt_from:
                thinning = 1.0 if only is None else len(self) / len(only)
                options["nprobe"] = _cells_searched(self._index.nlist, thinning)
                make = faiss.SearchParametersIVF
            if self._mirror and self._learnt_from and only is None:
                found = self._mirror.search(self._index, queries, top_k, options["nprobe"])
            else:
                found = self._index.search(queries, top_k, params=make(**options))
            del bitmap
        return cast(tuple[Vectors, Ids], found)

    def write(self, file: Path) -> None:
        """Writes the index to a file."""
        import faiss

        with self._lock:
            faiss.write_index(self._index, str(file))

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
        return index

    @property
    def learnt_from(self) -> int:
        """How many vectors there were when the cells were learnt; 0 while there are none."""
        return self._learnt_from

    def close(self) -> None:
        """Gives a GPU's memory back."""
        if self._mirror:
            self._mirror.close()

    def _settle(self) -> None:
        """After a change: takes the kind that fits the size."""
        if self._mirror:
            self._mirror.forget()
        count, before = len(self), self._learnt_from
        if count > max(self._flat_most, REGROW * before) or count * REGROW < before:
            if count > self._flat_most:
                fresh, self._learnt_from = self._cells(), count
            else:
                fresh, self._learnt_from = _flat(self.dim), 0
            for ids, vectors in _contents(self._index):
                fresh.add_with_ids(vectors, ids)
            self._index = fresh

    def _cells(self) -> Any:
        """Cells, still empty, learnt from a sample of what is there."""
        import faiss

        faiss.omp_set_num_threads(usable_cores())
        count = len(self)
        cells = _num_cells(count)
        fresh = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(self.dim),
            self.dim,
            cells,
            faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_INNER_PRODUCT,
            False,
        )
        fresh.cp.niter = 8
        fresh.cp.min_points_per_centroid = 1  # or it warns on small samples
        chosen = np.zeros(count, bool)
        rng = np.random.default_rng(count)
        chosen[rng.choice(count, min(count, _PER_CELL * cells), replace=False)] = True
        sample, seen = [], 0
        for _, vectors in _contents(self._index):
            sample.append(vectors[chosen[seen : seen + len(vectors)]])
            seen += len(vectors)
        fresh.train(np.concatenate(sample))
        return fresh


def _flat(dim: int) -> Any:
    import faiss

    plain = faiss.IndexScalarQuantizer(
        dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    return faiss.IndexIDMap2(plain)


def _num_cells(count: int) -> int:
    """The power of two nearest to four times the root."""
    return int(2 ** round(np.log2(4 * np.sqrt(count))))


def _cells_searched(cells: int, thinning: float) -> int:
    """How many cells a query looks into; all of them where only a few vectors count."""
    return min(cells, max(1, round(cells / _SEARCHED * thinning)))


def _contents(index: Any) -> Iterator[tuple[Ids, Vectors]]:
    """All that is in an index, part by part: ids and (decoded) vectors."""
    from faiss import vector_to_array

    if hasattr(index, "invlists"):
        from faiss.contrib import inspect_tools

        tools: Any = inspect_tools  # untyped
        for cell in range(index.nlist):
            ids, codes = tools.get_invlist(index.invlists, cell)
            yield ids, codes.view(np.float16).astype(np.float32)
        return
    ids = vector_to_array(index.id_map)
    step = 65_536
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        yield part, index.index.reconstruct_n(start, len(part))


def _selector(ids: Ids) -> tuple[Any, Any]:
    """What FAISS asks whether an id counts, and the memory it points to (keep both)."""
    import faiss as typed_faiss

    faiss: Any = typed_faiss  # its types know only the pointers beneath these classes
    first, last = int(ids.min()), int(ids.max())
    if last - first + 1 == len(ids):
        return None, faiss.IDSelectorRange(first, last + 1)
    flags = np.zeros(last + 1, bool)
    flags[ids] = True
    bitmap = np.packbits(flags, bitorder="little")
    return bitmap, faiss.IDSelectorBitmap(bitmap)
