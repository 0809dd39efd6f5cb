"""The values and seams of finding and fitting."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.document import Span

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts to vectors."""

    @property
    def name(self) -> str:
        """Identifies the model and its precision: vectors of different names never meet."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, float32 [len(texts), dim]."""
        ...

    def embed_query(self, query: str) -> Vectors:
        """Unit vector of a query, float32 [dim]."""
        ...

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by its tokenizer, special tokens not counted."""
        ...


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved chunk.

    Attributes:
        chunk_id: Its number in the library.
        document_id: Whose it is.
        span: Its place in the document's text.
        score: Higher is better; comparable within one search only.
    """

    chunk_id: int
    document_id: str
    span: Span
    score: float


class Pruner(Protocol):
    """Drops the sentences of passages that do not help with a question.

    Registered by file name in ``retrieval/pruners/``; dataclass fields are options.
    """

    def prune(
        self, question: str, passages: Sequence[str], *, headers: Sequence[str], embedder: Embedder
    ) -> list[list[Span]]:
        """What to keep of each passage.

        Args:
            question: The user's question.
            passages: Text of each passage.
            headers: Document title and section path of each passage, one string each.
            embedder: The library's embedder (a pruner with a model of its own ignores it).

        Returns:
            For each passage the kept sentences as spans within that passage's text, ascending,
            not overlapping; empty where nothing helps.
        """
        ...


class Shelf(Protocol):
    """What searching needs of a library; ``memory.store.Store`` is one.

    Only documents that are wholly read are seen. Chunk numbers are never used twice.
    """

    def generation(self) -> int:
        """Grows with every document that is added or deleted, by any process."""
        ...

    def document_ids(self) -> set[str]:
        """All documents."""
        ...

    def first_chunks(self) -> dict[str, int]:
        """All documents, and the number of the first chunk of each; -1 where it has none.

        No number is given twice, so a document that was deleted and has come again has another.
        """
        ...

    def chunk_ids(self, document_id: str) -> NDArray[np.int64]:
        """Numbers of a document's chunks in document order, ascending, [num_chunks]."""
        ...

    def vectors(self, document_id: str, embedder: str) -> Vectors | None:
        """Unit vectors of a document's chunks, float32 [num_chunks, dim]; None if never made."""
        ...

    def chunk_texts(self, document_id: str) -> list[tuple[str, str]]:
        """(header, text) of a document's chunks, in order; header: title and section path."""
        ...

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[str, Span]]:
        """Document and span of each chunk number; unknown (deleted) numbers are left out."""
        ...
