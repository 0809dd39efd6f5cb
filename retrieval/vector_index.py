"""The dense index of a library: whose vectors it holds, and its files."""

import json
import logging
import shutil
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from retrieval.background import begun
from retrieval.cells import Ids
from retrieval.dense_index import DenseIndex
from retrieval.disk_cells import DiskCells
from retrieval.disk_writer import PREFIX
from retrieval.errors import EmbedderMismatch
from retrieval.files import checksum, to_disk
from retrieval.layered_index import MEMORY_MOST, LayeredIndex
from retrieval.types import Shelf, Vectors

_log = logging.getLogger(__name__)
_LAYOUT = 1
_SAME_VECTOR = 0.98  # score of a vector and itself: they are kept as float16
_UNSAVED_MOST = 20_000  # vectors: read from the database again within seconds
_LEFT_BEHIND_S = 3_600.0  # age of a folder that nothing names, past which it is removed


class VectorIndex:
    """Passages by the nearness of their vectors to a query's, kept in step with the shelf.

    It works in memory, and past ``memory_most`` vectors mostly on the disk (``LayeredIndex``). Its
    files save time at the next start: a manifest, what is in memory, and a folder of what is on
    the disk. The manifest carries the embedder's name, the vectors' length and checksums, and files
    that are missing, damaged, or made by another embedder are not used: everything is read from the
    shelf again. Each file is written under a new name, brought to the disk, and then named by the
    manifest. Safe for threads; each process has an index of its own. Where another has moved
    vectors to the disk, this one goes over to those files at its next ``sync``.

    Args:
        folder: Where the file lies; made where missing.
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
        self._learnt_when_saved = 0
        self._disk_when_saved = ""  # name of the folder that the manifest names
        self._overtaken = self._moving = False
        self._mover: Future[None] | None = None
        self._index = LayeredIndex(dim, memory_most=memory_most)
        self._load()

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
        with self._lock:
            return (self._documents.keys() | self._missing) <= set(documents)

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

    def sync(self, shelf: Shelf, *, verify: bool = False) -> None:
        """Makes the index hold the shelf's documents and no others.

        Args:
            shelf: The documents and their vectors.
            verify: Also replaces documents whose chunk numbers are no longer those of the shelf.
        """
        with self._lock:
            if self._overtaken:
                self._overtaken = False
                self._start_anew()
            wanted = shelf.document_ids()
            gone = self._documents.keys() - wanted
            if verify:
                for document_id in self._documents.keys() & wanted:
                    if not np.array_equal(
                        self._documents[document_id], shelf.chunk_ids(document_id)
                    ):
                        gone.add(document_id)
            if gone:
                numbers = np.concatenate([self._documents.pop(each) for each in gone])
                self._index.remove(numbers)
                self._unsaved += len(numbers)
            self._missing = set()
            for document_id in sorted(wanted - self._documents.keys()):
                self._add(shelf, document_id)
            # What was deleted must not live on in the file.
            if gone or self._unsaved > _UNSAVED_MOST:
                self.save()
            self._move_if_due()

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
            if not (self._unsaved or self._has_moved()):
                return
            try:
                with FileLock(self._folder / "writer.lock", timeout=0):
                    if self._named_on_disk() != self._disk_when_saved:
                        self._overtaken = True
                        return
                    self._write()
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

    def _add(self, shelf: Shelf, document_id: str) -> None:
        ids, vectors = shelf.chunk_ids(document_id), shelf.vectors(document_id, self._embedder)
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
        if self._index.disk_name != self._disk_when_saved:
            self.save()
        if self._index.due and not self._moving and not self._overtaken:
            self._moving = True
            self._mover = begun(partial(self._move, self._index))

    def _move(self, index: LayeredIndex) -> None:
        moved = False
        try:
            with FileLock(self._folder / "disk.lock", timeout=0):
                self._sweep()
                self._overtaken = self._named_on_disk() != self._disk_when_saved
                moved = not self._overtaken and index.move(self._folder)
        except OSError as failure:  # a Timeout, where another process is at it, is one too
            _log.info("vectors stay in memory for now: %s", failure)
            index.postpone()
        finally:
            self._moving = False
        # Whoever holds the lock for long is in ``sync``, and saves as soon as it sees the move.
        if moved and self._lock.acquire(timeout=0.2):
            try:
                self.save()
            finally:
                self._lock.release()

    def _sweep(self) -> None:
        """Removes what killed processes have left of their moves."""
        in_use = {self._named_on_disk(), self._index.disk_name}
        for folder in self._folder.glob(f"{PREFIX}*"):
            # A whole one that is young will be named by a manifest presently.
            old = folder.suffix or time.time() - folder.stat().st_mtime > _LEFT_BEHIND_S
            if old and folder.name not in in_use:
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def _manifest(self) -> Path:
        return self._folder / "manifest.json"

    def _has_moved(self) -> bool:
        """Whether vectors lie otherwise than in the files, be they the same."""
        index = self._index
        return (index.fresh.learnt_from, index.disk_name) != (
            self._learnt_when_saved,
            self._disk_when_saved,
        )

    def _named_on_disk(self) -> str:
        """The folder that the manifest names now, perhaps by another process."""
        try:
            return str(json.loads(self._manifest.read_text(encoding="utf-8")).get("disk", ""))
        except (OSError, ValueError, AttributeError):
            return self._disk_when_saved  # damaged or gone: to be written anew

    def _write(self) -> None:
        """New files under their own names, then the manifest that names them, then no old file."""
        fresh = self._folder / "vectors.part"
        learnt_from, disk = self._index.write(fresh)
        sha256 = checksum(fresh)
        data = self._folder / f"vectors-{sha256[:16]}.faiss"
        fresh.replace(data)
        manifest = {
            "layout": _LAYOUT,
            "embedder": self._embedder,
            "dim": self._dim,
            "kind": "disk" if disk else "cells" if learnt_from else "flat",
            "learnt_from": learnt_from,
            "file": data.name,
            "sha256": sha256,
            "disk": disk,
            "documents": {each: _to_ranges(ids) for each, ids in self._documents.items()},
        }
        draft = self._folder / "manifest.part"
        draft.write_text(json.dumps(manifest), encoding="utf-8")
        to_disk(data)
        to_disk(draft)
        draft.replace(self._manifest)
        replaced, self._disk_when_saved = self._disk_when_saved, disk
        self._learnt_when_saved = learnt_from
        for old in self._folder.glob("vectors-*.faiss"):
            if old != data:
                old.unlink(missing_ok=True)
        if replaced and replaced != disk:
            shutil.rmtree(self._folder / replaced, ignore_errors=True)

    def _start_anew(self) -> None:
        """With what the files hold."""
        self._index.close()
        self._index = LayeredIndex(self._dim, memory_most=self._memory_most)
        self._documents, self._unsaved = {}, 0
        self._load()

    def _load(self) -> None:
        """What the files hold, if they can be trusted; else the index stays empty."""
        if not self._manifest.is_file():
            return
        try:
            manifest: dict[str, Any] = json.loads(self._manifest.read_text(encoding="utf-8"))
            made_for = manifest["layout"], manifest["embedder"], manifest["dim"]
            if made_for != (_LAYOUT, self._embedder, self._dim):
                raise ValueError(f"it was made for {made_for}")
            documents = {each: _to_ids(r) for each, r in manifest["documents"].items()}
            data = self._folder / manifest["file"]
            if checksum(data) != manifest["sha256"]:
                raise ValueError(f"{data.name} is damaged")
            fresh = DenseIndex.read(data, learnt_from=manifest["learnt_from"])
            on_disk = manifest.get("disk", "")
            index = LayeredIndex(
                self._dim,
                memory_most=self._memory_most,
                fresh=fresh,
                disk=DiskCells(self._folder / on_disk) if on_disk else None,
                alive=np.concatenate([np.zeros(0, np.int64), *documents.values()]),
            )
            if len(index) != sum(map(len, documents.values())):
                raise ValueError("it does not hold the vectors that it lists")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as reason:
            _log.info("the dense index in %s is built anew: %s", self._folder, reason)
            self._disk_when_saved = self._named_on_disk()  # so that it is written over
            return
        self._index, self._documents = index, documents
        self._learnt_when_saved, self._disk_when_saved = manifest["learnt_from"], on_disk


def _to_ranges(ids: Ids) -> list[list[int]]:
    """Ascending numbers as [first, past the last] pairs."""
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(ids, breaks) if len(part)]


def _to_ids(ranges: list[list[int]]) -> Ids:
    parts = [np.arange(first, past, dtype=np.int64) for first, past in ranges]
    return np.concatenate([np.zeros(0, np.int64), *parts])
