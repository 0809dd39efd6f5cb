"""Desks over texts in memory, with a search by shared words."""

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
from fakes import HashingEmbedder

from agents.desk import Desk
from memory.chunker import chunk
from memory.document import Document, Page, Section, Span
from retrieval.types import Passage
from serving.model import LanguageModel


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
    )


def search_of(documents: Sequence[Document]) -> Callable[[str, int], list[Passage]]:
    """Finds chunks by the words that they share with a query, rare ones first."""

    def counts(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    places = [
        (document.id, span, span.of(document.text).casefold())
        for document in documents
        for span in chunk(document, count_tokens=counts, max_tokens=60)
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
