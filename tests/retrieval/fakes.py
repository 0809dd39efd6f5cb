"""A hashing embedder and a shelf in memory, for tests that need no model and no database."""

import re
import zlib
from collections.abc import Sequence

import numpy as np

from memory.document import Span


class HashingEmbedder:
    """Texts that share words lie near each other: each word has a pseudo-random direction."""

    def __init__(self, dim: int = 64, name: str = "hashing") -> None:
        self.name = name
        self.dim = dim

    def embed(self, texts: Sequence[str]):
        return np.stack([self.embed_query(text) for text in texts] or [np.zeros(self.dim)]).astype(
            np.float32
        )[: len(texts)]

    def embed_query(self, query: str):
        total = np.zeros(self.dim)
        for word in re.findall(r"\w+", query.casefold()) or [""]:
            seed = zlib.crc32(word.encode("utf-8", "replace"))
            total += np.random.default_rng(seed).standard_normal(self.dim)
        return (total / np.linalg.norm(total)).astype(np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


class FakeShelf:
    """A ``retrieval.types.Shelf`` in memory; chunks of a document are parted by a blank line."""

    def __init__(self, embedder: HashingEmbedder | None = None) -> None:
        self.embedder = embedder or HashingEmbedder()
        self._generation = 0
        self._next_chunk = 1
        self._texts: dict[str, list[tuple[str, str]]] = {}
        self._ids: dict[str, list[int]] = {}
        self._vectors: dict[tuple[str, str], np.ndarray] = {}

    def add(self, document_id: str, text: str, header: str = "") -> None:
        """Puts a document in; its chunks are its paragraphs, embedded behind the header."""
        paragraphs = text.split("\n\n")
        self._texts[document_id] = [(header, paragraph) for paragraph in paragraphs]
        self._ids[document_id] = list(range(self._next_chunk, self._next_chunk + len(paragraphs)))
        self._next_chunk += len(paragraphs)
        self._generation += 1
        self.embed(document_id)

    def embed(self, document_id: str, embedder: HashingEmbedder | None = None) -> None:
        """Makes a document's vectors, with another embedder where one is given."""
        maker = embedder or self.embedder
        texts = [f"{header}\n{text}".strip() for header, text in self._texts[document_id]]
        self._vectors[document_id, maker.name] = maker.embed(texts)

    def remove(self, document_id: str) -> None:
        """Takes a document out, vectors and all."""
        del self._texts[document_id], self._ids[document_id]
        self._vectors = {key: v for key, v in self._vectors.items() if key[0] != document_id}
        self._generation += 1

    def generation(self) -> int:
        return self._generation

    def document_ids(self) -> set[str]:
        return set(self._ids)

    def first_chunks(self) -> dict[str, int]:
        return {each: min(ids, default=-1) for each, ids in self._ids.items()}

    def chunk_ids(self, document_id: str):
        return np.array(self._ids.get(document_id, []), np.int64)

    def vectors(self, document_id: str, embedder: str):
        return self._vectors.get((document_id, embedder))

    def chunk_texts(self, document_id: str) -> list[tuple[str, str]]:
        return list(self._texts.get(document_id, []))

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[str, Span]]:
        wanted, found = set(chunk_ids), {}
        for document_id, ids in self._ids.items():
            start = 0
            for chunk_id, (_, text) in zip(ids, self._texts[document_id], strict=True):
                if chunk_id in wanted:
                    found[chunk_id] = (document_id, Span(start, start + len(text)))
                start += len(text) + 2
        return found
