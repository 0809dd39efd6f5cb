"""Nearest vectors on the disk: one bit a dimension to find candidates, then the vectors."""

import json
import threading
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retrieval.cells import Ids, selector
from retrieval.cores import usable_cores
from retrieval.files import checksum
from retrieval.types import Vectors

CODES, VECTORS, IDS, ABOUT = "codes.faiss", "vectors.f16", "ids.i64", "about.json"
_EXACT_MOST = 20_000  # vectors that are all read and compared: some 15 MB, 20 ms
_QUERY_BITS = 8  # of a query's dimensions, where codes are compared with it


@dataclass(frozen=True, slots=True)
class About:
    """What is known of vectors on the disk.

    Attributes:
        num_vectors: How many there are.
        dim: Length of each.
        learnt_from: How many there were when the cells were learnt.
        nprobe: Cells that a search looks into.
        candidates: Vectors that are read and compared exactly, at least.
        recall: Share of the ten nearest that searches found with these settings when they were
            chosen, see ``retrieval/recall.py``.
        codes_sha256: Of the file of cells and codes.
    """

    num_vectors: int
    dim: int
    learnt_from: int
    nprobe: int
    candidates: int
    recall: float
    codes_sha256: str


class DiskCells:
    """Unit vectors by inner product, in a folder that is written once (``disk_writer``).

    Three files: the vectors as float16 in the order of their ids; the ids; and codes of one bit a
    dimension (RaBitQ, arXiv:2405.12497), laid in cells. A search looks into the nearest cells,
    takes the best candidates by their codes, reads those vectors and compares them exactly. Codes
    and ids are mapped into memory, so what they take (72 bytes a vector of 384 dimensions) is the
    system's to take back; vectors are read and not mapped, so they take none. Beside a product
    quantiser of as many bytes the codes found as much, and need no learning (one of 48 bytes took
    four seconds to learn, one of 96 a minute).

    Vectors never change, but those of deleted documents can be overwritten with zeros. Safe for
    threads, and for processes, also when the folder is deleted under them where the system lets
    an open file live on.

    Args:
        folder: What ``disk_writer.written`` made.
        draft: It is just being made: the codes are not compared with their checksum.

    Raises:
        ValueError: a file is damaged, or does not fit the others.
        RuntimeError: FAISS cannot read its file.
        OSError: a file is missing.
    """

    def __init__(self, folder: Path, *, draft: bool = False) -> None:
        self.folder = folder
        self.about = About(**json.loads((folder / ABOUT).read_text(encoding="utf-8")))
        count, dim = self.about.num_vectors, self.about.dim
        if not draft and checksum(folder / CODES) != self.about.codes_sha256:
            raise ValueError(f"{folder / CODES} is damaged")
        self.ids: Ids = np.memmap(folder / IDS, np.int64, "r", shape=(count,))
        if (folder / VECTORS).stat().st_size != count * dim * 2:
            raise ValueError(f"{folder / VECTORS} does not hold {count:,} vectors")
        self._codes: Any = None
        if not draft and self.codes.ntotal != count:  # opened at once: the file may go
            raise ValueError(f"{folder / CODES} does not hold {count:,} codes")
        self._file: FileIO = (folder / VECTORS).open("rb", buffering=0)
        self._reading = threading.Lock()
        self._living: tuple[Any, ...] | None = None  # what FAISS asks, made once for each ``dead``

    def __len__(self) -> int:
        return self.about.num_vectors

    def __del__(self) -> None:
        if "_file" in self.__dict__:
            self._file.close()

    @property
    def codes(self) -> Any:
        """The FAISS index of codes in cells, mapped; a draft may not have it yet."""
        if self._codes is None:
            import faiss

            self._codes = faiss.read_index(str(self.folder / CODES), faiss.IO_FLAG_MMAP)
        return self._codes

    def search(
        self, queries: Vectors, top_k: int, *, only: Ids | None = None, dead: Ids | None = None
    ) -> tuple[Vectors, Ids]:
        """The nearest vectors of each query, the nearest first, with exact scores.

        Args:
            queries: Unit vectors, float32 [num_queries, dim].
            top_k: Most results a query.
            only: Searches these ids alone; exactly where they are few.
            dead: Ids that are not to be found; an array that does not change.

        Returns:
            Scores, float32 [num_queries, top_k], and ids of the same shape, -1 where a query has
            no further result.
        """
        if only is not None:
            only = only[self.has(only)]
            if dead is not None and len(dead):
                only = only[~np.isin(only, dead)]
            if len(only) <= _EXACT_MOST:
                return self._among(queries, np.broadcast_to(only, (len(queries), len(only))), top_k)
        wanted = max(self.about.candidates, 8 * top_k)
        share = 1.0 if only is None else len(only) / len(self)
        nprobe = min(self.codes.nlist, round(self.about.nprobe / share))
        found = self.candidates(queries, wanted, nprobe=nprobe, only=only, dead=dead)
        return self._among(queries, found, top_k)

    def candidates(
        self,
        queries: Vectors,
        count: int,
        *,
        nprobe: int,
        only: Ids | None = None,
        dead: Ids | None = None,
    ) -> Ids:
        """Ids of the nearest by their codes, [num_queries, count]; -1 where there are no more.

        Args:
            queries: Unit vectors, float32 [num_queries, dim].
            count: Most ids a query.
            nprobe: Cells to look into.
            only: These alone may be found.
            dead: These may not be found; not looked at where ``only`` is given.
        """
        import faiss as typed_faiss

        faiss: Any = typed_faiss  # its types know only the pointers beneath these classes
        # Many queries are tried beside the work of others, to whom one core is left.
        faiss.omp_set_num_threads(1 if len(queries) == 1 else max(1, usable_cores() - 1))
        bitmap = None
        options = faiss.IVFRaBitQSearchParameters()
        options.nprobe, options.qb = nprobe, _QUERY_BITS
        if only is not None:
            bitmap, options.sel = selector(only)
        elif dead is not None and len(dead):
            if self._living is None or self._living[0] is not dead:
                bits, inner = selector(dead)
                self._living = dead, bits, inner, faiss.IDSelectorNot(inner)
            options.sel = self._living[-1]
        _, ids = self.codes.search(queries, min(count, len(self)), params=options)
        del bitmap
        return cast(Ids, ids)

    def has(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids are here, those of overwritten vectors too."""
        rows = np.searchsorted(self.ids, ids)
        return cast(NDArray[np.bool_], self.ids[np.minimum(rows, max(0, len(self) - 1))] == ids)

    def vectors(self, ids: Ids) -> NDArray[np.float16]:
        """Vectors of ids that are here, float16 [len(ids), dim]."""
        return self.rows(np.searchsorted(self.ids, ids))

    def rows(self, rows: Ids) -> NDArray[np.float16]:
        """Vectors by their place in the order of ids, float16 [len(rows), dim]."""
        dim = self.about.dim
        out = np.empty((len(rows), dim), np.float16)
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        with self._reading:
            for first, past in zip(
                [0, *breaks.tolist()], [*breaks.tolist(), len(rows)], strict=True
            ):
                if first == past:
                    continue
                self._file.seek(int(rows[first]) * dim * 2)
                self._file.readinto(out[first:past].view(np.uint8).data)
        return out

    def erase(self, ids: Ids) -> None:
        """Overwrites vectors; their codes, which tell little, go when the folder is made anew.

        Raises:
            OSError: the file cannot be written.
        """
        dim = self.about.dim
        with (self.folder / VECTORS).open("r+b") as file:
            for row in np.searchsorted(self.ids, ids[self.has(ids)]).tolist():
                file.seek(row * dim * 2)
                file.write(bytes(dim * 2))

    def _among(self, queries: Vectors, candidates: Ids, top_k: int) -> tuple[Vectors, Ids]:
        """The nearest of each query's own candidates."""
        scores = np.full((len(queries), top_k), -np.inf, np.float32)
        ids = np.full((len(queries), top_k), -1, np.int64)
        for place, query in enumerate(queries):
            own = np.sort(candidates[place][candidates[place] >= 0])
            near = self.vectors(own).astype(np.float32) @ query
            best = np.argsort(-near, kind="stable")[:top_k]
            scores[place, : len(best)], ids[place, : len(best)] = near[best], own[best]
        return scores, ids


def about_text(about: About) -> str:
    """The file that says what is known, as ``DiskCells`` reads it."""
    return json.dumps(asdict(about), indent=1)
