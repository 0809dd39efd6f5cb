"""Nearest vectors, however many: what is new in memory, what is old on the disk."""

import logging
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.cells import Ids
from retrieval.dense_index import FLAT_MOST, REGROW, DenseIndex
from retrieval.disk_cells import DiskCells
from retrieval.disk_writer import written
from retrieval.types import Vectors

_log = logging.getLogger(__name__)

MEMORY_MOST = 500_000
"""Past so many vectors they move to the disk: 400 MB of 384 dimensions, more while they move."""
_NONE: Ids = np.zeros(0, np.int64)


class LayeredIndex:
    """Unit vectors by inner product: a ``DenseIndex`` in memory and, past a size, one on the disk.

    While there are few, all are in memory. Past ``memory_most`` they move into ``DiskCells``, and
    memory holds what has come since and which ids on the disk are dead. Once an eighth is new or a
    fifth dead the disk's part is due to be written anew; once there are only a quarter of
    ``memory_most`` all come back. ``move`` does what is due, for a thread beside the others: they
    search, add and remove meanwhile, and what they change is taken over at its end.

    Args:
        dim: Length of a vector.
        memory_most: Most vectors that are held in memory alone.
        fresh: What is in memory.
        disk: What is on the disk.
        alive: Ids that are to be found; of those in ``disk`` all others are dead.
    """

    def __init__(
        self,
        dim: int,
        *,
        memory_most: int = MEMORY_MOST,
        fresh: DenseIndex | None = None,
        disk: DiskCells | None = None,
        alive: Ids = _NONE,
    ) -> None:
        self.dim = dim
        self._memory_most = memory_most
        self._fresh = DenseIndex(dim) if fresh is None else fresh
        self._disk, self._dead = disk, _NONE
        if disk:
            newer = np.concatenate([_NONE, *(ids for ids, _ in self._fresh.contents())])
            self._dead = disk.ids[~np.isin(disk.ids, np.setdiff1d(alive, newer))]
        self._lock = threading.RLock()
        # While a move goes on: what has come (a vector) and gone (None) since it began.
        self._changes: dict[int, NDArray[np.float16] | None] | None = None
        self._moved = threading.Event()
        self._moved.set()
        self._not_before = 0  # vectors, after a move has failed

    def __len__(self) -> int:
        with self._lock:
            return len(self._fresh) + (len(self._disk) - len(self._dead) if self._disk else 0)

    @property
    def kind(self) -> str:
        """How vectors are compared: "flat", "cells", or "disk" where some are there."""
        return "disk" if self._disk else self._fresh.kind

    @property
    def fresh(self) -> DenseIndex:
        """What is in memory."""
        return self._fresh

    @property
    def disk_name(self) -> str:
        """Name of the folder on the disk; empty where there is none."""
        return self._disk.folder.name if self._disk else ""

    def write(self, file: Path) -> tuple[int, str]:
        """Writes what is in memory; gives ``learnt_from`` of it and the ``disk_name`` beside it."""
        with self._lock:
            return self._fresh.write(file), self.disk_name

    @property
    def due(self) -> bool:
        """Whether ``move`` has something to do."""
        with self._lock:
            if self._changes is not None or len(self) < self._not_before:
                return False
            if self._disk is None:
                return len(self._fresh) > self._fresh_most()
            return (
                len(self._fresh) > self._fresh_most()
                or len(self._dead) > len(self._disk) // 5
                or self._fits_memory()
            )

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """Puts vectors in; as ``DenseIndex.add``. Waits for a move where far more come than fit."""
        with self._lock:
            self._fresh.add(ids, vectors)
            if self._changes is not None:
                self._changes.update(zip(ids.tolist(), vectors.astype(np.float16), strict=True))
            crowded = len(self._fresh) > self._fresh_most() + self._memory_most // 8
        if crowded:
            self._moved.wait()

    def remove(self, ids: Ids) -> None:
        """Takes vectors out, and overwrites those on the disk; unknown ids do nothing."""
        with self._lock:
            self._fresh.remove(ids)
            if self._changes is not None:
                self._changes.update(dict.fromkeys(ids.tolist()))
            if self._disk is None:
                return
            gone = ids[self._disk.has(ids)]
            self._dead = np.union1d(self._dead, gone)
            disk = self._disk
        _erase(disk, gone)

    def search(
        self, vectors: Vectors, top_k: int, *, only: Ids | None = None
    ) -> tuple[Vectors, Ids]:
        """The nearest vectors of each query, the nearest first; as ``DenseIndex.search``."""
        with self._lock:
            top_k = min(top_k, len(self) if only is None else len(only))
            scores, ids = self._fresh.search(vectors, top_k, only=only)
            if self._disk is None or top_k < 1:
                return scores, ids
            queries = np.ascontiguousarray(vectors, np.float32)
            more, others = self._disk.search(queries, top_k, only=only, dead=self._dead)
        scores, ids = np.hstack([scores, more]), np.hstack([ids, others])
        order = np.argsort(np.where(ids < 0, np.inf, -scores), axis=1, kind="stable")[:, :top_k]
        return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)

    def has_on_disk(self, ids: Ids, vectors: Vectors | None = None) -> bool:
        """Whether all of these ids live on the disk, with these vectors if some are given.

        Args:
            ids: [num_vectors].
            vectors: float32 [num_vectors, dim].
        """
        with self._lock:
            if self._disk is None or not self._disk.has(ids).all():
                return False
            if np.isin(ids, self._dead).any():
                return False
            return vectors is None or np.allclose(self._disk.vectors(ids), vectors, atol=1e-3)

    def expect_move(self) -> None:
        """A move is about to come: who adds far more than fits in memory waits for ``go_on``."""
        self._moved.clear()

    def go_on(self) -> None:
        """The move has ended, or does not come."""
        self._moved.set()

    def move(self, parent: Path) -> bool:
        """Does what is due: writes the disk's part anew in a folder there, or takes it back.

        Returns:
            Whether it was done; a failure is logged and leaves all as it was.
        """
        with self._lock:
            if self._changes is not None:
                return False
            self._changes = {}
            old, dead, fresh, comes_back = self._disk, self._dead, self._fresh, self._fits_memory()
        try:
            disk = None
            if comes_back and old:
                memory = _all_in_memory(old, dead, fresh)
            else:
                disk = written(parent, fresh.contents(), dim=self.dim, old=old, dead=dead)
                memory = DenseIndex(self.dim, flat_most=4 * FLAT_MOST)  # soon empty again
            with self._lock:
                touched = np.sort(np.fromiter(self._changes, np.int64, len(self._changes)))
                memory.remove(touched)
                there = {n: v for n, v in self._changes.items() if v is not None}
                if there:
                    vectors = np.stack(list(there.values())).astype(np.float32)
                    memory.add(np.fromiter(there, np.int64, len(there)), vectors)
                self._dead = touched[disk.has(touched)] if disk else _NONE
                self._fresh, self._disk = memory, disk
                self._not_before = 0
            if disk:
                _erase(disk, self._dead)
        except (OSError, RuntimeError, ValueError, MemoryError) as failure:
            _log.warning("vectors were not moved to the disk in %s: %s", parent, failure)
            self.postpone()
            return False
        finally:
            with self._lock:
                self._changes = None
        fresh.abandon()
        return True

    def postpone(self) -> None:
        """Nothing is due until there is an eighth more."""
        with self._lock:
            self._not_before = len(self) + len(self) // 8

    def settle(self) -> None:
        """Waits until cells that are being learnt are in use."""
        self._fresh.settle()

    def abandon(self) -> None:
        """Gives a GPU's memory back; cells that are being learnt are given up, without waiting."""
        self._fresh.abandon()

    def close(self) -> None:
        """Waits for cells that are being learnt, and gives a GPU's memory back."""
        self._fresh.close()

    def _fresh_most(self) -> int:
        """Past so many vectors in memory, a move is due."""
        if self._disk is None:
            return self._memory_most
        return min(self._memory_most, max(FLAT_MOST, len(self._disk) // 8))

    def _fits_memory(self) -> bool:
        return self._disk is not None and len(self) * REGROW < self._memory_most


def _all_in_memory(old: DiskCells, dead: Ids, fresh: DenseIndex) -> DenseIndex:
    """All that lives on the disk and all that is new."""
    memory, ids = DenseIndex(fresh.dim), old.ids[~np.isin(old.ids, dead)]
    for start in range(0, len(ids), FLAT_MOST):
        part = ids[start : start + FLAT_MOST]
        memory.add(part, old.vectors(part).astype(np.float32))
    for some, vectors in fresh.contents():
        memory.remove(some)
        memory.add(some, vectors.astype(np.float32))
    return memory


def _erase(disk: DiskCells, ids: Ids) -> None:
    try:
        disk.erase(ids)
    except OSError as failure:  # they are not found again, and go when it is written anew
        _log.warning("vectors in %s were not overwritten: %s", disk.folder, failure)
