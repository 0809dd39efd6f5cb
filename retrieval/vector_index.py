"""The dense index of a library: whose vectors it holds, and its files."""

import logging
import threading
from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from retrieval.background import begun
from retrieval.cells import Ids
from retrieval.errors import EmbedderMismatch
from retrieval.index_files import IndexFiles
from retrieval.layered_index import MEMORY_MOST, LayeredIndex
from retrieval.types import Shelf, Vectors

_log = logging.getLogger(__name__)
_SAME_VECTOR = 0.98  # score of a vector and itself: they are kept as float16
_UNSAVED_MOST = 20_000  # vectors: read from the database again within seconds


class VectorIndex:
    """Passages by the nearness of their vectors to a query's, kept in step with the shelf.

    It works in memory, and past ``memory_most`` vectors mostly on the disk (``LayeredIndex``). Its
    files (``IndexFiles``) save time at the next start; where they cannot be used, everything is
    read from the shelf again. Safe for threads; each process has an index of its own. Where another
    has moved vectors to the disk, this one goes over to those files at its next ``sync``.

    Args:
        folder: Where the files lie; made where missing.
        embedder: Name of the embedder whose vectors are searched.
        dim: Length of its vectors.
        memory_most: Most vectors that are held in memory alone.
    """

    def __init__(
        self, folder: Path, *, embedder: str, dim: int, memory_most: int = MEMORY_MOST
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._embedder, self._dim = folder, embedder, dim
        self._memory_most = memory_most
        self._lock = threading.RLock()
        self._documents: dict[str, Ids] = {}
        self._missing: set[str] = set()
        self._unsaved = 0
        self._moved_to = ""  # the folder on the disk for which ``sync`` has saved, or has tried
        self._overtaken = self._moving = False
        self._mover: Future[None] | None = None
        self._files = IndexFiles(folder, embedder=embedder, dim=dim)
        self._index = LayeredIndex(dim, memory_most=memory_most)
        self._read()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def kind(self) -> str:
        """How vectors are compared, see ``DenseIndex``."""
        return self._index.kind

    @property
    def missing(self) -> frozenset[str]:
        """Documents of the shelf that have no vectors by this embedder."""
        return frozenset(self._missing)

    def holds_only(self, documents: Collection[str]) -> bool:
        """Whether there is no document but these to search."""
        among = frozenset(documents)
        with self._lock:
            return self._documents.keys() <= among and self._missing <= among

    def holds(self, shelf: Shelf, document_id: str) -> bool:
        """Whether a document's chunks are here, and one found by its vector is that one."""
        ids, vectors = shelf.chunk_ids(document_id), shelf.vectors(document_id, self._embedder)
        with self._lock:
            if not np.array_equal(self._documents.get(document_id, ids[:0]), ids):
                return False
        if vectors is None:
            return not len(ids)
        if self._index.has_on_disk(ids):
            return self._index.has_on_disk(ids, vectors)
        middle = len(ids) // 2
        found = self.search(vectors[middle], 1, documents=[document_id])
        return bool(found) and found[0][1] > _SAME_VECTOR

    def size(self, document_id: str) -> int:
        """How many chunks a document has here; 0 where it has none."""
        with self._lock:
            return len(self._documents.get(document_id, ()))

    def sync(self, shelf: Shelf) -> None:
        """Makes the index hold the shelf's documents, as they are numbered there, and no others."""
        with self._lock:
            if self._overtaken:
                self._read()
            self._follow(shelf)
            if self._overtaken:  # as was seen when it was to be saved
                self._read()
                self._follow(shelf)

    def search(
        self, vector: Vectors, top_k: int, *, documents: Collection[str] | None = None
    ) -> list[tuple[int, float]]:
        """Chunk numbers and scores of the nearest passages, the nearest first.

        Args:
            vector: The query's unit vector, float32 [dim].
            top_k: Most passages.
            documents: Only these are searched; None searches all.

        Raises:
            EmbedderMismatch: a document that is to be searched has no vectors by this embedder.
        """
        with self._lock:
            lacking = self._missing if documents is None else self._missing & set(documents)
            if lacking:
                raise EmbedderMismatch(
                    f"{len(lacking)} document(s) have no vectors by the embedder "
                    f"{self._embedder!r} ({', '.join(sorted(lacking)[:3])}); embed them with it, "
                    "or go back to the embedder that they were added with"
                )
            only = None
            if documents is not None:
                parts = [self._documents[each] for each in documents if each in self._documents]
                only = np.concatenate([np.zeros(0, np.int64), *parts])
            scores, ids = self._index.search(vector[None, :], top_k, only=only)
        pairs = zip(ids[0].tolist(), scores[0].tolist(), strict=True)
        return [(number, score) for number, score in pairs if number >= 0]

    def save(self) -> None:
        """Writes the file if anything has changed; leaves it if another process is writing it."""
        with self._lock:
            if not self._unsaved and self._files.fit(self._index):
                return
            try:
                with FileLock(self._folder / "writer.lock", timeout=0):
                    self._overtaken = self._files.overtaken()
                    if self._overtaken:
                        return
                    self._files.write(self._index, self._documents)
            except Timeout:
                return
            except (OSError, RuntimeError) as failure:  # FAISS raises RuntimeErrors
                _log.warning("the dense index was not saved in %s: %s", self._folder, failure)
                return
            self._unsaved = 0

    def settle(self) -> None:
        """Waits for cells that are being learnt, and for vectors on their way to the disk."""
        self._index.settle()
        if self._mover:
            self._mover.result()

    def close(self, *, save: bool = True) -> None:
        """Gives a GPU's memory back, after saving what is not saved where that is wished.

        Cells that are being learnt are waited for, and vectors that are on their way to the disk:
        the next start would begin anew.
        """
        self.settle()
        if save:
            self.save()
        self._index.close()

    def _follow(self, shelf: Shelf) -> None:
        """As ``sync``, from what is here."""
        self._overtaken = False
        wanted = shelf.first_chunks()
        # What was deleted and added again meanwhile, by another process, has other numbers.
        gone = [each for each, ids in self._documents.items() if wanted.get(each) != _first(ids)]
        if gone:
            numbers = np.concatenate([self._documents.pop(each) for each in gone])
            self._index.remove(numbers)
            self._unsaved += len(numbers)
        self._missing = set()
        for document_id in sorted(wanted.keys() - self._documents.keys()):
            self._add(shelf, document_id)
        # What was deleted must not live on in the file.
        if gone or self._unsaved > _UNSAVED_MOST:
            self.save()
        self._move_if_due()

    def _add(self, shelf: Shelf, document_id: str) -> None:
        # In this order: of one that is deleted meanwhile there are no numbers.
        vectors, ids = shelf.vectors(document_id, self._embedder), shelf.chunk_ids(document_id)
        if vectors is None or vectors.shape != (len(ids), self._dim):
            if len(ids):  # else it was deleted meanwhile, or is empty
                self._missing.add(document_id)
            return
        self._index.add(ids, vectors)
        self._documents[document_id] = ids
        self._unsaved += len(ids)
        self._move_if_due()

    def _move_if_due(self) -> None:
        """Has vectors moved to the disk, or there written anew, beside the work."""
        if self._index.disk_name != self._moved_to:
            self._moved_to = self._index.disk_name
            self.save()
        if self._index.due and not self._moving and not self._overtaken:
            self._moving = True
            self._index.expect_move()
            self._mover = begun(partial(self._move, self._index))

    def _move(self, index: LayeredIndex) -> None:
        moved = False
        try:
            with FileLock(self._folder / "disk.lock", timeout=0):
                self._files.sweep()
                self._overtaken = self._files.overtaken()
                moved = not self._overtaken and index.move(self._folder)
        except OSError as failure:  # a Timeout, where another process is at it, is one too
            _log.info("vectors stay in memory for now: %s", failure)
            index.postpone()
        finally:
            self._moving = False
            index.go_on()
        # Whoever holds the lock for long is in ``sync``, and saves as soon as it sees the move.
        if moved and self._lock.acquire(timeout=0.2):
            try:
                self.save()
            finally:
                self._lock.release()

    def _read(self) -> None:
        """Begins with what the files hold, or with nothing."""
        self._index.abandon()
        read = self._files.read(self._memory_most)
        self._index, self._documents = read or (
            LayeredIndex(self._dim, memory_most=self._memory_most),
            {},
        )
        self._unsaved, self._moved_to = 0, self._index.disk_name


def _first(ids: Ids) -> int:
    """As ``Shelf.first_chunks`` tells it."""
    return int(ids[0]) if len(ids) else -1
