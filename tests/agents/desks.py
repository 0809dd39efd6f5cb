"""Desks over texts in memory, with a search by shared words."""

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
from fakes import HashingEmbedder

from agents.desk import Desk
from memory.artefacts import Artefact
from memory.chunker import chunk
from memory.document import Document, Page, Section, Span
from memory.memories import Memories
from memory.options import MemoryOptions
from retrieval.types import Passage
from serving.model import LanguageModel, Usage


def document_of(title: str, text: str) -> Document:
    """A document whose sections begin at lines such as "Chapter 1"."""
    heads = list(re.finditer(r"^(?:Chapter|CHAPTER) \w+.{0,60}$", text, re.MULTILINE))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return Document(
        id=hashlib.sha256(text.encode()).hexdigest(),
        name=f"{title}.txt",
        title=title,
        media_type="text/plain",
        text=text,
        pages=(Page(0, "", Span(0, len(text))),),
        sections=[
            Section(head.group(), 1, Span(head.start(), end))
            for head, end in zip(heads, ends, strict=True)
        ],
    )


def desk_of(model: LanguageModel, *documents: Document, budget_tokens: int = 120) -> Desk:
    """A desk over these documents alone."""
    known = {document.id: document for document in documents}
    return Desk(
        documents=tuple(known),
        search=search_of(documents),
        document=known.__getitem__,
        model=model,
        embedder=HashingEmbedder(),
        pruner=None,
        budget_tokens=budget_tokens,
        memories=memories_of(model, *documents),
    )


class KeptInMemory:
    """Artefacts without a database."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Artefact] = {}

    def find(self, document_id: str, keys: Sequence[str]) -> dict[str, Artefact]:
        return {k: self.rows[document_id, k] for k in keys if (document_id, k) in self.rows}

    def put(self, document_id: str, key: str, *, kind: str, data: object, usage: Usage) -> None:
        self.rows[document_id, key] = Artefact(data, usage, datetime.now(UTC))


def memories_of(
    model: LanguageModel, *documents: Document, options: MemoryOptions | None = None
) -> Memories:
    """Memories of these documents alone, with short episodes."""
    known = {document.id: document for document in documents}
    return Memories(
        document=known.__getitem__,
        chunks=lambda key: chunk(known[key], count_tokens=_counts, max_tokens=20),
        vectors=lambda key: None,
        model=model,
        artefacts=KeptInMemory(),
        options=options or MemoryOptions(min_words=20, max_words=50, fan_out=2),
    )


def _counts(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def search_of(documents: Sequence[Document]) -> Callable[[str, int], list[Passage]]:
    """Finds chunks by the words that they share with a query, rare ones first."""

    places = [
        (document.id, span, span.of(document.text).casefold())
        for document in documents
        for span in chunk(document, count_tokens=_counts, max_tokens=60)
    ]

    def search(query: str, top_k: int) -> list[Passage]:
        wanted = sorted(set(re.findall(r"\w{3,}", query.casefold())))
        weight = {word: 1 / (1 + sum(word in text for *_, text in places)) for word in wanted}
        scored = [
            Passage(number, key, span, sum(weight[word] for word in wanted if word in text))
            for number, (key, span, text) in enumerate(places)
        ]
        scored = [passage for passage in scored if passage.score]
        return sorted(scored, key=lambda p: (-p.score, p.chunk_id))[:top_k]

    return search
