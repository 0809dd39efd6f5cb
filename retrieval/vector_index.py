"""The dense index of a library: whose vectors it holds, and its file."""

import hashlib
import json
import logging
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from retrieval.cells import Ids
from retrieval.dense_index import DenseIndex
from retrieval.errors import EmbedderMismatch
from retrieval.types import Shelf, Vectors

_log = logging.getLogger(__name__)
_LAYOUT = 1
_SAME_VECTOR = 0.98  # score of a vector and itself: they are kept as float16
_UNSAVED_MOST = 20_000  # vectors: read from the database again within seconds


class VectorIndex:
    """Passages by the nearness of their vectors to a query's, kept in step with the shelf.

    It works in memory; its file only saves time at the next start. The file carries the embedder's
    name, the vectors' length and a checksum, and one that is missing, damaged, or made by another
    embedder is not used: everything is read from the shelf again. Safe for threads; each process
    has an index of its own and the file is replaced as a whole.

    Args:
        folder: Where the file lies; made where missing.
        embedder: Name of the embedder whose vectors are searched.
        dim: Length of its vectors.
    """

    def __init__(self, folder: Path, *, embedder: str, dim: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._embedder, self._dim = folder, embedder, dim
        self._lock = threading.RLock()
        self._documents: dict[str, Ids] = {}
        self._missing: set[str] = set()
        self._unsaved = 0
        self._learnt_when_saved = 0
        self._index = DenseIndex(dim)
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
            if not self._unsaved and self._index.learnt_from == self._learnt_when_saved:
                return
            try:
                with FileLock(self._folder / "writer.lock", timeout=0):
                    self._write()
            except Timeout:
                return
            except (OSError, RuntimeError) as failure:  # FAISS raises RuntimeErrors
                _log.warning("the dense index was not saved in %s: %s", self._folder, failure)
                return
            self._unsaved = 0

    def close(self, *, save: bool = True) -> None:
        """Gives a GPU's memory back, after saving what is not saved where that is wished.

        Cells that are being learnt are waited for: the next start would learn them again.
        """
        self._index.settle()
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

    @property
    def _manifest(self) -> Path:
        return self._folder / "manifest.json"

    def _write(self) -> None:
        """A new file under its own name, then the manifest that points to it, then no old file."""
        fresh = self._folder / "vectors.part"
        learnt_from = self._index.write(fresh)
        checksum = _checksum(fresh)
        data = self._folder / f"vectors-{checksum[:16]}.faiss"
        fresh.replace(data)
        manifest = {
            "layout": _LAYOUT,
            "embedder": self._embedder,
            "dim": self._dim,
            "kind": "cells" if learnt_from else "flat",
            "learnt_from": learnt_from,
            "file": data.name,
            "sha256": checksum,
            "documents": {each: _to_ranges(ids) for each, ids in self._documents.items()},
        }
        draft = self._folder / "manifest.part"
        draft.write_text(json.dumps(manifest), encoding="utf-8")
        draft.replace(self._manifest)
        self._learnt_when_saved = learnt_from
        for old in self._folder.glob("vectors-*.faiss"):
            if old != data:
                old.unlink(missing_ok=True)

    def _load(self) -> None:
        """What the file holds, if it can be trusted; else the index stays empty."""
        if not self._manifest.is_file():
            return
        try:
            manifest: dict[str, Any] = json.loads(self._manifest.read_text(encoding="utf-8"))
            made_for = manifest["layout"], manifest["embedder"], manifest["dim"]
            if made_for != (_LAYOUT, self._embedder, self._dim):
                raise ValueError(f"it was made for {made_for}")
            data = self._folder / manifest["file"]
            if _checksum(data) != manifest["sha256"]:
                raise ValueError(f"{data.name} is damaged")
            index = DenseIndex.read(data, learnt_from=manifest["learnt_from"])
            documents = {each: _to_ids(r) for each, r in manifest["documents"].items()}
            if len(index) != sum(map(len, documents.values())):
                raise ValueError("it does not hold the vectors that it lists")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as reason:
            _log.info("the dense index in %s is built anew: %s", self._folder, reason)
            return
        self._index, self._documents = index, documents
        self._learnt_when_saved = manifest["learnt_from"]


def _checksum(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _to_ranges(ids: Ids) -> list[list[int]]:
    """Ascending numbers as [first, past the last] pairs."""
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(ids, breaks) if len(part)]


def _to_ids(ranges: list[list[int]]) -> Ids:
    parts = [np.arange(first, past, dtype=np.int64) for first, past in ranges]
    return np.concatenate([np.zeros(0, np.int64), *parts])
