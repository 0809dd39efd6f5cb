"""FAISS indexes as they are used here: plain, in cells, and what lies in them."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.types import Vectors

Ids = NDArray[np.int64]

PER_CELL = 50  # vectors to learn a cell from


def flat(dim: int) -> Any:
    """An index that compares every vector, two bytes a dimension."""
    import faiss

    plain = faiss.IndexScalarQuantizer(
        dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    return faiss.IndexIDMap2(plain)


def learnt(sample: Vectors, *, num_cells: int, num_threads: int) -> Any:
    """Cells, still empty, whose middles are learnt from a sample; two bytes a dimension.

    Args:
        sample: Unit vectors, float32 [num_vectors, dim]; no fewer than cells.
        num_cells: How many cells.
        num_threads: Processor threads to learn with.
    """
    import faiss

    faiss.omp_set_num_threads(num_threads)
    dim = sample.shape[1]
    fresh = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dim),
        dim,
        num_cells,
        faiss.ScalarQuantizer.QT_fp16,
        faiss.METRIC_INNER_PRODUCT,
        False,
    )
    fresh.cp.niter = 8
    fresh.cp.min_points_per_centroid = 1  # or it warns on small samples
    fresh.train(np.ascontiguousarray(sample))
    return fresh


def num_cells(count: int) -> int:
    """How many cells suit so many vectors: the power of two nearest to four times the root."""
    return int(2 ** round(np.log2(4 * np.sqrt(max(count, 1)))))


def contents(index: Any, lock: threading.Lock) -> Iterator[tuple[Ids, NDArray[np.float16]]]:
    """All that is in an index, part by part: ids and vectors.

    Each part is copied under the lock, and others may change the index between two parts: what
    they add or remove meanwhile may or may not be among what comes.
    """
    import faiss as typed_faiss

    faiss: Any = typed_faiss  # its types know only the pointers beneath these classes
    if hasattr(index, "invlists"):
        from faiss.contrib import inspect_tools

        tools: Any = inspect_tools  # untyped
        for cell in range(index.nlist):
            with lock:
                ids, codes = tools.get_invlist(index.invlists, cell)
            yield ids, codes.view(np.float16)
        return
    with lock:
        ids = faiss.vector_to_array(index.id_map)
    step = 65_536
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        with lock:
            now = faiss.vector_to_array(index.id_map)
            rows = np.arange(start, start + len(part))
            if not np.array_equal(now[rows[rows < len(now)]], part):
                # What was removed meanwhile has shifted all that lies behind it.
                rows = np.flatnonzero(np.isin(now, part))
            if not len(rows):
                continue
            codes = faiss.downcast_index(index.index).codes
            every = faiss.rev_swig_ptr(codes.data(), codes.size()).reshape(len(now), -1)
            vectors = every[rows].view(np.float16)
        yield now[rows], vectors


def selector(ids: Ids) -> tuple[Any, Any]:
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


def forget(index: Any, ids: Ids) -> None:
    """Takes ids out of an index; there is at least one, and unknown ones do nothing."""
    bitmap, gone = selector(ids)
    index.remove_ids(gone)
    del bitmap
