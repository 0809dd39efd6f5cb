"""Writes vectors to the disk as ``DiskCells`` reads them."""

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.cells import PER_CELL, Ids, forget, num_cells
from retrieval.cores import usable_cores
from retrieval.dense_index import REGROW
from retrieval.disk_cells import ABOUT, CODES, IDS, VECTORS, About, DiskCells, about_text
from retrieval.files import checksum, to_disk
from retrieval.recall import made_up_queries, settings
from retrieval.types import Vectors

Parts = Iterator[tuple[Ids, NDArray[np.float16]]]

PREFIX = "disk-"
_SAMPLE_MOST = 65_536  # vectors that cells are learnt from: 100 MB
_QUERIES = 200
_AT_ONCE = 8_192  # vectors: 12 MB as float32


def written(parent: Path, parts: Parts, *, dim: int, old: DiskCells | None, dead: Ids) -> DiskCells:
    """A new folder in ``parent`` with all of ``old`` but ``dead``, and with ``parts``.

    The folder gets its name once all its files are on the disk; before, it ends in ".part". Memory
    holds the codes, a sample and little more, however many vectors there are. Cells are learnt
    anew where the old ones were learnt from four times fewer or more vectors.

    Args:
        parent: Where the folder is made.
        parts: What is new: ids, none of them alive in ``old``, and vectors.
        dim: Length of a vector.
        old: What there was.
        dead: Ids of ``old`` that are left out.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
        RuntimeError: FAISS failed.
        ValueError: there is nothing to write.
    """
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    draft = parent / f"{name}.part"
    draft.mkdir()
    try:
        arrived = _put_beside(draft / "new", parts)
        new_ids = _merge(draft, arrived, dim=dim, old=old, dead=dead)
        count = (draft / IDS).stat().st_size // new_ids.itemsize
        _describe(draft, About(count, dim, 0, 1, 400, 0.0, ""))
        raw = DiskCells(draft, draft=True)
        rng = np.random.default_rng(count)
        held_out = _drawn(raw, 3 * _QUERIES, rng)
        learnt_from = old.about.learnt_from if old else 0
        if old is None or not learnt_from <= REGROW * count <= REGROW**2 * learnt_from:
            learnt_from = count
            wanted = _num_cells(count)
            codes = _empty(_drawn(raw, min(_SAMPLE_MOST, PER_CELL * wanted), rng), wanted)
            fresh: Ids = raw.ids
        else:
            codes = _without(old, dead)
            fresh = new_ids
        for start in range(0, len(fresh), _AT_ONCE):
            ids = fresh[start : start + _AT_ONCE]
            codes.add_with_ids(raw.vectors(ids).astype(np.float32), ids)
        _save(codes, draft / CODES)
        del codes
        about = replace(raw.about, learnt_from=learnt_from, codes_sha256=checksum(draft / CODES))
        nprobe, candidates, recall = settings(raw, made_up_queries(held_out, _QUERIES))
        _describe(draft, replace(about, nprobe=nprobe, candidates=candidates, recall=recall))
        for file in (VECTORS, IDS, CODES, ABOUT):
            to_disk(draft / file)
        del raw  # some systems rename no folder that has an open file
        final = draft.rename(parent / name)
        to_disk(parent)
        return DiskCells(final)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _put_beside(file: Path, parts: Parts) -> Ids:
    """Writes vectors as they come; gives their ids in that order."""
    ids = [np.zeros(0, np.int64)]
    with file.open("wb") as out:
        for some, vectors in parts:
            ids.append(some)
            out.write(np.ascontiguousarray(vectors).data)
    return np.concatenate(ids)


def _merge(draft: Path, arrived: Ids, *, dim: int, old: DiskCells | None, dead: Ids) -> Ids:
    """Old and new vectors in the order of their ids; gives the new ids, ascending."""
    kept = np.flatnonzero(~np.isin(old.ids, dead)) if old else np.zeros(0, np.int64)
    new_ids, place = np.unique(arrived, return_index=True)
    every = np.concatenate([old.ids[kept], new_ids]) if old else new_ids
    if not len(every):
        raise ValueError(f"no vectors to write to {draft}")
    order = np.argsort(every, kind="stable")
    every[order].tofile(draft / IDS)
    beside = draft / "new"
    with (draft / VECTORS).open("wb") as out:
        for start in range(0, len(order), _AT_ONCE):
            which = order[start : start + _AT_ONCE]
            block = np.empty((len(which), dim), np.float16)
            is_old = which < len(kept)
            if old is not None:
                block[is_old] = old.rows(kept[which[is_old]])
            if len(arrived):  # mapped for each block: what was touched would stay in memory
                new = np.memmap(beside, np.float16, "r", shape=(len(arrived), dim))
                block[~is_old] = new[place[which[~is_old] - len(kept)]]
                del new
            out.write(block.data)
    beside.unlink()
    return new_ids


def _num_cells(count: int) -> int:
    """Half of what is best in memory: codes are quick to look through, and cells slow to learn."""
    return max(1, num_cells(count) // 2)


def _drawn(cells: DiskCells, count: int, rng: np.random.Generator) -> Vectors:
    """So many vectors, at most all, in random order."""
    rows = np.sort(rng.choice(len(cells), min(count, len(cells)), replace=False))
    vectors = cells.rows(rows).astype(np.float32)
    return vectors[rng.permutation(len(vectors))]


def _empty(sample: Vectors, wanted: int) -> Any:
    """Codes in cells that are learnt from a sample, with nothing in them yet."""
    import faiss as typed_faiss

    faiss: Any = typed_faiss  # its types know only the pointers beneath these classes
    faiss.omp_set_num_threads(max(1, usable_cores() - 1))  # searches go on meanwhile
    dim = sample.shape[1]
    codes = faiss.IndexIVFRaBitQ(
        faiss.IndexFlatIP(dim), dim, min(wanted, len(sample)), faiss.METRIC_INNER_PRODUCT
    )
    codes.cp.niter, codes.cp.min_points_per_centroid = 8, 1  # 1: no warning on small samples
    codes.train(sample)
    return codes


def _without(old: DiskCells, dead: Ids) -> Any:
    """The old codes without those of dead vectors, in memory."""
    import faiss

    faiss.omp_set_num_threads(max(1, usable_cores() - 1))
    codes: Any = faiss.read_index(str(old.folder / CODES))
    if len(dead):
        forget(codes, dead)
    return codes


def _save(codes: Any, file: Path) -> None:
    import faiss

    faiss.write_index(codes, str(file))


def _describe(draft: Path, about: About) -> None:
    (draft / ABOUT).write_text(about_text(about), encoding="utf-8")
