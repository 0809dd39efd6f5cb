"""Taking a document into the store, so that nothing is ever half-visible.

A worker claims the document, keeps its text, then its vectors batch by batch, and at last lets it
be seen. Each step is one transaction. A worker that dies leaves a claim that grows stale; the next
one takes it over and goes on where the dead one stopped.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from memory.document import Document, Span
from memory.store import Entry, Store, grow
from memory.tables import (
    ChunkRow,
    DocumentRow,
    PageRow,
    ProblemRow,
    SectionRow,
    TextRow,
    VectorRow,
    text_digest,
)


class Intake:
    """The writing end of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(
        self, entry: Entry, *, owner: str, now: float, stale_s: float, dead: str = ""
    ) -> str | None:
        """Takes a document to read in, unless somebody else is at it.

        Args:
            entry: What is known of it before reading; its ``state`` is ignored.
            owner: Names this worker; no two workers share a name.
            now: Seconds since the epoch.
            stale_s: A claim without a sign of life for so long is taken over.
            dead: An owner known to be dead: its claim is taken over at once.

        Returns:
            None when the claim is ours; else "ready", or the name of the owner at work.
        """
        try:
            with self._store.writing() as session:
                session.add(
                    DocumentRow(
                        id=entry.id,
                        name=entry.name,
                        size_bytes=entry.size_bytes,
                        file=entry.file,
                        added_at=datetime.now(UTC),
                        state="reading",
                        owner=owner,
                        beat=now,
                    )
                )
            return None
        except IntegrityError:
            return self._take_over(entry.id, owner=owner, before=now - stale_s, now=now, dead=dead)

    def _take_over(
        self, document_id: str, *, owner: str, before: float, now: float, dead: str
    ) -> str | None:
        with self._store.writing() as session:
            taken = session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == document_id, DocumentRow.state == "reading")
                .where((DocumentRow.beat < before) | DocumentRow.owner.in_([owner, dead]))
                .values(owner=owner, beat=now)
            )
            if taken.rowcount:  # type: ignore[attr-defined]  # a CursorResult, by the statement
                return None
            row = session.get(DocumentRow, document_id)
            if row is None:
                return "nobody"  # deleted meanwhile: the caller tries again
            return "ready" if row.state == "ready" else row.owner

    def beat(self, document_id: str, *, owner: str, now: float) -> bool:
        """Gives a sign of life; False where the claim was lost (deleted, or taken over)."""
        with self._store.writing() as session:
            held = session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == document_id, DocumentRow.owner == owner)
                .where(DocumentRow.state == "reading")
                .values(beat=now)
            )
            return bool(held.rowcount)  # type: ignore[attr-defined]

    def unclaim(self, document_id: str, *, owner: str) -> None:
        """Lets go of a claim so that the next worker need not wait for it to grow stale."""
        with self._store.writing() as session:
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == document_id, DocumentRow.owner == owner)
                .values(beat=0.0)
            )

    def put_text(self, document: Document, chunks: Sequence[Span]) -> None:
        """Keeps the text, pages, sections, problems and chunks of a claimed document."""
        key = document.id
        with self._store.writing() as session:
            for table in (TextRow, PageRow, SectionRow, ProblemRow, ChunkRow, VectorRow):
                session.execute(delete(table).where(table.document_id == key))
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == key)
                .values(
                    title=document.title,
                    media_type=document.media_type,
                    language=document.language,
                    paged=document.paged,
                    num_pages=len(document.pages),
                    pages_read=document.pages_read,
                    num_words=len(document.text.split()),
                )
            )
            session.add(
                TextRow(document_id=key, text=document.text, digest=text_digest(document.text))
            )
            session.add_all(
                PageRow(
                    document_id=key,
                    number=page.index,
                    label=page.label,
                    start=page.span.start,
                    end=page.span.end,
                    source=page.source,
                )
                for page in document.pages
            )
            session.add_all(
                SectionRow(
                    document_id=key,
                    position=position,
                    title=section.title,
                    level=section.level,
                    start=section.span.start,
                    end=section.span.end,
                )
                for position, section in enumerate(document.sections)
            )
            session.add_all(
                ProblemRow(
                    document_id=key,
                    position=position,
                    page=problem.page,
                    what=problem.what,
                    remedy=problem.remedy,
                )
                for position, problem in enumerate(document.problems)
            )
            session.add_all(
                ChunkRow(document_id=key, start=chunk.start, end=chunk.end) for chunk in chunks
            )

    def put_vectors(
        self, document_id: str, *, embedder: str, first: int, vectors: NDArray[np.float32]
    ) -> None:
        """Keeps vectors [count, dim] of the chunks from position ``first`` of the document on."""
        with self._store.writing() as session:
            session.merge(
                VectorRow(
                    document_id=document_id,
                    embedder=embedder,
                    first=first,
                    count=len(vectors),
                    data=vectors.astype(np.float16).tobytes(),
                )
            )

    def num_embedded(self, document_id: str, embedder: str) -> int:
        """How many chunks, from the first on, have their vectors."""
        with self._store.transaction() as session:
            rows = session.execute(
                select(VectorRow.first, VectorRow.count)
                .where(VectorRow.document_id == document_id, VectorRow.embedder == embedder)
                .order_by(VectorRow.first)
            ).all()
        done = 0
        for first, count in rows:
            if first != done:
                break
            done += count
        return done

    def finish(self, document_id: str) -> None:
        """Lets a claimed document be seen."""
        with self._store.writing() as session:
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == document_id)
                .values(state="ready", owner="")
            )
            grow(session, "generation")
