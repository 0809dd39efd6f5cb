"""Hybrid search over a library: nearness of meaning and shared words, fused."""

import logging
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from retrieval.fusion import Fusion, fuse, lifted
from retrieval.layered_index import MEMORY_MOST
from retrieval.query import core
from retrieval.reranker import Reranker
from retrieval.stretches import by_stretches
from retrieval.types import Embedder, Passage, Shelf
from retrieval.vector_index import VectorIndex
from retrieval.word_index import WordIndex

_log = logging.getLogger(__name__)
_QUERY_MOST = 4_000  # characters: well past what embedders read, and quick
_DEPTH = 50  # passages that each ranking gives, and that a reranker reads, at least


class Searcher:
    """Finds the passages of a library that fit a query.

    Both indexes are derived from the shelf and follow it: documents that any process has added or
    deleted since the last search are taken in first. Every method may be called from several
    threads, and several processes may use one folder.

    Args:
        shelf: The library.
        embedder: Makes the query's vector; the shelf must hold its vectors.
        folder: Where the indexes lie. Where it cannot be written they are made in a temporary
            folder.
        fusion: How the two rankings become one.
        reranker: Reads the best passages again, if given.
        vectors_in_memory: Most vectors that are held in memory; past that they are on the disk.
    """

    def __init__(
        self,
        shelf: Shelf,
        embedder: Embedder,
        folder: Path,
        *,
        fusion: Fusion | None = None,
        reranker: Reranker | None = None,
        vectors_in_memory: int = MEMORY_MOST,
    ) -> None:
        self._shelf, self._embedder = shelf, embedder
        self._fusion, self._reranker = fusion or Fusion(), reranker
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._borrowed: tempfile.TemporaryDirectory[str] | None = None
        if not _writable(folder):
            self._borrowed = tempfile.TemporaryDirectory(prefix="gistree-index-")
            _log.info("the index folder %s cannot be written; using %s", folder, self._borrowed)
            folder = Path(self._borrowed.name)
        self._vectors = VectorIndex(
            folder / "dense",
            embedder=embedder.name,
            dim=embedder.dim,
            memory_most=vectors_in_memory,
        )
        self._words = WordIndex(folder / "words")

    def search(
        self, query: str, *, documents: Collection[str] | None = None, top_k: int = 10
    ) -> list[Passage]:
        """The best passages, best first.

        Args:
            query: A question, keywords or a sentence. Of a very long one its beginning and its
                end count.
            documents: Ids of the documents to search; None searches all. Unknown ones hold nothing.
            top_k: Most passages.

        Raises:
            EmbedderMismatch: a document that is to be searched has no vectors by this embedder.
        """
        self.sync()
        query = _bounded(query)
        if not query.strip() or top_k < 1:
            return []
        if documents is not None:
            documents = frozenset(documents)
            if self._vectors.holds_only(documents):
                documents = None  # unfiltered search is faster
        ranked = self._ranked(query, documents, top_k)
        places = self._shelf.places([number for number, _ in ranked])
        if len(places) < len(ranked):
            # A number that the shelf does not know: a document went, or came back with new ones.
            self.sync(verify=True)
            ranked = self._ranked(query, documents, top_k)
            places = self._shelf.places([number for number, _ in ranked])
        passages = [
            Passage(number, *places[number], score) for number, score in ranked if number in places
        ]
        if self._reranker is not None:
            passages = self._reranked(self._reranker, query, passages[: max(top_k, _DEPTH)])
        return passages[:top_k]

    def sync(self, *, verify: bool = False) -> None:
        """Brings both indexes up to the shelf; does nothing where it has not changed.

        Args:
            verify: Looks even so, and at every chunk number in the index of words.

        Raises:
            RetrievalError: the index folder cannot be written.
        """
        with self._lock:
            generation = self._shelf.generation()
            if generation == self._generation and not verify and not self._vectors.missing:
                return
            self._vectors.sync(self._shelf)
            self._words.sync(self._shelf, verify=verify)
            self._generation = generation

    def holds(self, document_id: str) -> bool:
        """Whether both indexes hold a document's chunks as the shelf does, and no others of it."""
        with self._lock:
            return self._vectors.holds(self._shelf, document_id) and self._words.holds(
                self._shelf, document_id
            )

    def close(self) -> None:
        """Saves the indexes; the searcher is not used afterwards."""
        with self._lock:
            # Another process may have deleted what this one still holds: that is not written back.
            self._vectors.close(save=self._shelf.generation() == self._generation)
            if self._borrowed is not None:
                self._borrowed.cleanup()

    def _ranked(
        self, query: str, documents: frozenset[str] | None, top_k: int
    ) -> list[tuple[int, float]]:
        """Chunk numbers and fused scores, best first."""
        depth = max(2 * top_k, _DEPTH)
        near = self._vectors.search(
            self._embedder.embed_query(core(query)), depth, documents=documents
        )
        worded = self._words.search(query, depth, documents=documents)
        weight = self._fusion.word_weight(query, rare_share=self._words.rare_share(query))
        scores = fuse(near, worded, word_weight=weight)
        around = {number + step for number in scores for step in (-1, 0, 1)}
        owners = {n: place[0] for n, place in self._shelf.places(sorted(around)).items()}
        ranked = lifted(scores, _neighbours(scores, owners), lift=self._fusion.lift)
        return self._by_stretches(ranked, scores, owners) if self._fusion.stretches else ranked

    def _by_stretches(
        self,
        ranked: Sequence[tuple[int, float]],
        scores: Mapping[int, float],
        owners: Mapping[int, str],
    ) -> list[tuple[int, float]]:
        """The same scores, handed out anew within the documents whose best stand together."""
        groups: dict[str, list[tuple[int, float]]] = {}
        for number, score in ranked:
            groups.setdefault(owners.get(number, ""), []).append((number, score))
        found: list[tuple[int, float]] = []
        for owner, group in groups.items():
            own = {number: scores[number] for number, _ in group if number in scores}
            found += by_stretches(group, own, self._vectors.size(owner))
        return sorted(found, key=lambda each: -each[1])  # of equals the order stays

    def _reranked(
        self, reranker: Reranker, query: str, passages: Sequence[Passage]
    ) -> list[Passage]:
        """The same passages with the reranker's scores, best first."""
        texts: dict[int, str] = {}
        for document_id in {passage.document_id for passage in passages}:
            numbers = self._shelf.chunk_ids(document_id).tolist()
            pairs = self._shelf.chunk_texts(document_id)
            texts |= {n: "\n".join(pair).strip() for n, pair in zip(numbers, pairs, strict=False)}
        kept = [passage for passage in passages if passage.chunk_id in texts]
        scores = reranker.scores(query, [texts[passage.chunk_id] for passage in kept])
        rescored = [
            Passage(each.chunk_id, each.document_id, each.span, score)
            for each, score in zip(kept, scores, strict=True)
        ]
        return sorted(rescored, key=lambda each: -each.score)


def _neighbours(found: Collection[int], owners: Mapping[int, str]) -> dict[int, list[int]]:
    """The chunks before and after each chunk that was found; those count as found too."""
    beside: dict[int, list[int]] = {number: [] for number in found}
    for number in found:
        for other in (number - 1, number + 1):
            if number in owners and owners.get(other) == owners[number]:
                beside[number].append(other)
                beside.setdefault(other, []).append(number)
    return beside


def _bounded(query: str) -> str:
    """The query, or the beginning and the end of one too long to be a question."""
    if len(query) <= _QUERY_MOST:
        return query
    half = _QUERY_MOST // 2
    return f"{query[:half]} {query[-half:]}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
