"""Whether a library's database holds what it should: texts, spans, vectors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sqlalchemy import delete, select, text

from memory.document import Document, Span
from memory.errors import LibraryError
from memory.store import Store
from memory.tables import TextRow, VectorRow, text_digest

Kind = Literal["database", "text", "vectors", "index", "file", "orphan"]
_UNIT_TOLERANCE = 0.02  # vectors are kept as float16


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in a library that is not as it should be.

    Attributes:
        kind: What it is in. Vectors, the index and orphans are derived, or nobody's: they can be
            repaired. The others need the person.
        what: In words.
        document_id: Of the document, empty where it is none's.
        repaired: Whether it was put right.
    """

    kind: Kind
    what: str
    document_id: str = ""
    repaired: bool = False

    @property
    def derived(self) -> bool:
        """Whether it can be repaired without the person."""
        return self.kind in ("vectors", "index", "orphan")


def database_flaws(store: Store) -> Iterator[Flaw]:
    """What the database says of itself: damaged pages, rows that belong to nothing."""
    try:
        with store.transaction() as session:
            if session.get_bind().dialect.name != "sqlite":
                return
            for (said,) in session.execute(text("PRAGMA integrity_check")):
                if said != "ok":
                    yield Flaw("database", f"the database is damaged: {said}")
            for row in session.execute(text("PRAGMA foreign_key_check")):
                yield Flaw("database", f"a row of {row[0]} belongs to no {row[2]}")
    except LibraryError as error:
        yield Flaw("database", str(error))


def text_flaws(store: Store, document: Document) -> Iterator[Flaw]:
    """Whether a document's text is the one that was read from its file."""
    with store.transaction() as session:
        digest = session.scalar(select(TextRow.digest).where(TextRow.document_id == document.id))
    if digest is not None and digest != text_digest(document.text):
        what = "its text is not what was read from its file. Delete it and add the file again"
        yield Flaw("text", what, document.id)


def document_flaws(document: Document, chunks: Sequence[Span]) -> Iterator[Flaw]:
    """Spans that do not fit the text."""
    whole = Span(0, len(document.text))

    def outside(spans: Sequence[Span]) -> bool:
        return any(not 0 <= span.start <= span.end <= whole.end for span in spans)

    named: dict[str, Sequence[Span]] = {
        "pages": [page.span for page in document.pages],
        "sections": [section.span for section in document.sections],
        "chunks": chunks,
    }
    for name, spans in named.items():
        if outside(spans):
            yield Flaw("text", f"its {name} lie outside its text", document.id)
    for name in ("pages", "chunks"):
        pairs = zip(named[name], named[name][1:], strict=False)
        if any(after.start < before.end for before, after in pairs):
            yield Flaw("text", f"its {name} overlap", document.id)
    ends = [0, *(span.end for span in chunks)]
    starts = [*(span.start for span in chunks), whole.end]
    gaps = (Span(a, b) for a, b in zip(ends, starts, strict=True) if a < b)
    if chunks and any(gap.of(document.text).strip() for gap in gaps):
        yield Flaw("text", "some of its text is in no chunk", document.id)


def vector_flaws(store: Store, document_id: str, embedder: str) -> Iterator[Flaw]:
    """Vectors that are missing, or no unit vectors."""
    try:
        vectors = store.vectors(document_id, embedder)
    except ValueError as error:  # bytes that are no whole rows
        yield Flaw("vectors", f"its vectors are damaged: {error}", document_id)
        return
    if vectors is None:
        if len(store.chunks(document_id)):
            yield Flaw("vectors", f"it has no vectors by {embedder}", document_id)
        return
    norms = np.linalg.norm(vectors, axis=1)
    bad = int(np.sum(~(np.abs(norms - 1.0) <= _UNIT_TOLERANCE)))  # not a number is bad, too
    if bad:
        yield Flaw("vectors", f"{bad} of its {len(vectors)} vectors are damaged", document_id)


def drop_vectors(store: Store, document_id: str, embedder: str) -> None:
    """Forgets a document's vectors by an embedder, so that they are made again."""
    with store.writing() as session:
        session.execute(
            delete(VectorRow).where(
                VectorRow.document_id == document_id, VectorRow.embedder == embedder
            )
        )
