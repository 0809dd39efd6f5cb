"""A copy of a dense index on a GPU, for searching only."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from retrieval.types import Vectors


class GpuMirror:
    """Searches a FAISS index of cells (an inverted file) on the first GPU.

    GPU indexes cannot forget vectors and are not safe for two threads, so this one is only ever
    read, by a thread of its own, and is made anew from the index in main memory after a change.
    Needs the extra ``faiss-gpu``. Its logic is tested with a stand-in for FAISS; on a GPU it has
    not been run yet.

    Args:
        faiss: The FAISS module, built for GPUs.
    """

    def __init__(self, faiss: Any) -> None:
        self._faiss = faiss
        self._thread = ThreadPoolExecutor(1, "gistree-gpu")
        self._resources: Any = None
        self._copy: Any = None

    @classmethod
    def where_there_is_one(cls) -> Self | None:
        """A mirror if FAISS is built for GPUs and sees one, else None."""
        import faiss

        if not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() < 1:
            return None
        return cls(faiss)

    def search(self, index: Any, queries: Vectors, top_k: int, nprobe: int) -> tuple[Any, Any]:
        """What ``index.search`` gives, worked out on the GPU.

        Args:
            index: The index in main memory; copied where it has changed since the last search.
            queries: Unit vectors, float32 [num_queries, dim].
            top_k: Results a query.
            nprobe: Cells to look into.
        """
        found: tuple[Any, Any] = self._thread.submit(
            self._search, index, queries, top_k, nprobe
        ).result()
        return found

    def forget(self) -> None:
        """The index has changed: the copy is not used again."""
        self._thread.submit(self._drop).result()

    def close(self) -> None:
        """Gives the GPU's memory back."""
        self.forget()
        self._thread.shutdown()
        self._resources = None

    def _search(self, index: Any, queries: Vectors, top_k: int, nprobe: int) -> tuple[Any, Any]:
        if self._copy is None:
            self._resources = self._resources or self._faiss.StandardGpuResources()
            self._copy = self._faiss.index_cpu_to_gpu(self._resources, 0, index)
        parameters = self._faiss.SearchParametersIVF(nprobe=nprobe)
        found: tuple[Any, Any] = self._copy.search(queries, top_k, params=parameters)
        return found

    def _drop(self) -> None:
        self._copy = None
