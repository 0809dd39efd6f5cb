"""The files of a vector index: a manifest, what is in memory, a folder of what is on the disk."""

import json
import logging
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retrieval.cells import Ids
from retrieval.dense_index import DenseIndex
from retrieval.disk_cells import DiskCells
from retrieval.disk_writer import PREFIX
from retrieval.files import checksum, to_disk
from retrieval.layered_index import LayeredIndex

_log = logging.getLogger(__name__)
_LAYOUT = 1
_LEFT_BEHIND_S = 3_600.0  # age of a folder that nothing names, past which it is removed


class IndexFiles:
    """Reads and writes a ``LayeredIndex`` and whose vectors it holds.

    The manifest carries the embedder's name, the vectors' length and checksums, and files that are
    missing, damaged, or made by another embedder are not used. Each file is written under a new
    name, brought to the disk, and then named by the manifest, which is replaced as a whole; what it
    no longer names is removed. So a process that is killed leaves the old files or the new ones.

    Args:
        folder: Where they lie.
        embedder: Name of the embedder whose vectors they hold.
        dim: Length of a vector.
    """

    def __init__(self, folder: Path, *, embedder: str, dim: int) -> None:
        self._folder, self._embedder, self._dim = folder, embedder, dim
        self._manifest = folder / "manifest.json"
        # As this process last read or wrote them.
        self._learnt_from = 0
        self._disk = ""

    def overtaken(self) -> bool:
        """Whether another process has moved vectors to the disk since this one read or wrote."""
        return self._named() != self._disk

    def fit(self, index: LayeredIndex) -> bool:
        """Whether vectors lie in the files as they do in an index, if they are the same."""
        return (index.fresh.learnt_from, index.disk_name) == (self._learnt_from, self._disk)

    def read(self, memory_most: int) -> tuple[LayeredIndex, dict[str, Ids]] | None:
        """What they hold, index and each document's ids; None if they cannot be trusted.

        Args:
            memory_most: As for ``LayeredIndex``.
        """
        if not self._manifest.is_file():
            return None
        try:
            manifest: dict[str, Any] = json.loads(self._manifest.read_text(encoding="utf-8"))
            made_for = manifest["layout"], manifest["embedder"], manifest["dim"]
            if made_for != (_LAYOUT, self._embedder, self._dim):
                raise ValueError(f"it was made for {made_for}")
            data = self._folder / manifest["file"]
            if checksum(data) != manifest["sha256"]:
                raise ValueError(f"{data.name} is damaged")
            documents = {each: _to_ids(ranges) for each, ranges in manifest["documents"].items()}
            learnt_from, disk = manifest["learnt_from"], manifest.get("disk", "")
            index = LayeredIndex(
                self._dim,
                memory_most=memory_most,
                fresh=DenseIndex.read(data, learnt_from=learnt_from),
                disk=DiskCells(self._folder / disk) if disk else None,
                alive=np.concatenate([np.zeros(0, np.int64), *documents.values()]),
            )
            if len(index) != sum(map(len, documents.values())):
                raise ValueError("it does not hold the vectors that it lists")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as reason:
            _log.info("the dense index in %s is built anew: %s", self._folder, reason)
            self._disk = self._named()  # to be written over, not to be waited for
            return None
        self._learnt_from, self._disk = learnt_from, disk
        return index, documents

    def write(self, index: LayeredIndex, documents: Mapping[str, Ids]) -> None:
        """Writes an index that does not change meanwhile, but for where its vectors lie.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
            RuntimeError: FAISS failed.
        """
        fresh = self._folder / "vectors.part"
        learnt_from, disk = index.write(fresh)
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
            "documents": {each: _to_ranges(ids) for each, ids in documents.items()},
        }
        draft = self._folder / "manifest.part"
        draft.write_text(json.dumps(manifest), encoding="utf-8")
        to_disk(data)
        to_disk(draft)
        draft.replace(self._manifest)
        replaced, self._disk, self._learnt_from = self._disk, disk, learnt_from
        for old in self._folder.glob("vectors-*.faiss"):
            if old != data:
                old.unlink(missing_ok=True)
        if replaced and replaced != disk:
            shutil.rmtree(self._folder / replaced, ignore_errors=True)

    def sweep(self) -> None:
        """Removes what killed processes have left of their moves; nobody else is at one.

        Raises:
            OSError: the folder cannot be read.
        """
        in_use = {self._named(), self._disk}
        for folder in self._folder.glob(f"{PREFIX}*"):
            # A whole one that is young will be named by a manifest presently.
            old = folder.suffix or time.time() - folder.stat().st_mtime > _LEFT_BEHIND_S
            if old and folder.name not in in_use:
                shutil.rmtree(folder, ignore_errors=True)

    def _named(self) -> str:
        """The folder on the disk that the manifest names now; ours where it cannot be read."""
        try:
            return str(json.loads(self._manifest.read_text(encoding="utf-8")).get("disk", ""))
        except (OSError, ValueError, AttributeError):
            return self._disk


def _to_ranges(ids: Ids) -> list[list[int]]:
    """Ascending numbers as [first, past the last] pairs."""
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(ids, breaks) if len(part)]


def _to_ids(ranges: list[list[int]]) -> Ids:
    parts = [np.arange(first, past, dtype=np.int64) for first, past in ranges]
    return np.concatenate([np.zeros(0, np.int64), *parts])
