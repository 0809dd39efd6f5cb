"""The library's database, as values. Every method is one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from memory.chats import forget_document
from memory.database import WRITES, explained, migrate
from memory.document import Document, Page, Problem, Section, Span
from memory.errors import DocumentNotFound
from memory.tables import (
    ChunkRow,
    Counter,
    DocumentRow,
    JobRow,
    PageRow,
    ProblemRow,
    SectionRow,
    TagRow,
    TextRow,
    VectorRow,
)

State = Literal["reading", "ready"]
_AT_ONCE = 500  # values in one IN (…): SQLite and PostgreSQL both take that many


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as a list shows it: everything but its text.

    Attributes:
        id: SHA-256 of its bytes.
        file: Its copy in the library, relative to the library's folder.
        state: "reading" until it is wholly in; only "ready" ones are searched.
        num_pages: Pages, or parts of an unpaged format.
        pages_read: Those of them from which nothing is missing.
    """

    id: str
    name: str
    title: str
    media_type: str
    language: str
    paged: bool
    size_bytes: int
    file: str
    added_at: datetime
    state: State
    num_pages: int
    pages_read: int
    num_words: int
    tags: tuple[str, ...] = ()


class Store:
    """What a library keeps. Safe for many threads and many processes."""

    def __init__(
        self, engine: Engine, *, where: str, read_only: bool = False, may_begin: bool = True
    ) -> None:
        """Opens the database, making or migrating its tables.

        Args:
            engine: Of the database.
            where: The library, as the person knows it.
            read_only: It must have its tables.
            may_begin: They may be made where there are none.
        """
        self._engine = engine
        self.where = where
        try:
            with explained(where):
                migrate(engine, where=where, read_only=read_only, may_begin=may_begin)
        except BaseException:
            engine.dispose()
            raise

    def close(self) -> None:
        """Gives the connections back."""
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """One transaction that only reads: what it sees does not change under it."""
        with (
            explained(self.where),
            Session(self._engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction that may write: all of it is kept, or nothing.

        It waits for the right to write before it looks at anything (see ``memory.database``).
        """
        with self.transaction() as session:
            session.connection(execution_options={WRITES: True})
            yield session

    # ---- looking ---------------------------------------------------------------------------

    def entries(self, *, state: State | None = "ready") -> list[Entry]:
        """All documents, the oldest first."""
        with self.transaction() as session:
            query = select(DocumentRow).order_by(DocumentRow.added_at, DocumentRow.id)
            if state is not None:
                query = query.where(DocumentRow.state == state)
            rows = session.scalars(query).all()
            tags: dict[str, list[str]] = {}
            for tag in session.scalars(select(TagRow).order_by(TagRow.tag)):
                tags.setdefault(tag.document_id, []).append(tag.tag)
        return [_entry(row, tuple(tags.get(row.id, ()))) for row in rows]

    def entry(self, document_id: str) -> Entry:
        """One document without its text.

        Raises:
            DocumentNotFound: the library does not hold it.
        """
        with self.transaction() as session:
            row = session.get(DocumentRow, document_id)
            if row is None:
                raise DocumentNotFound(f"{self.where} holds no document {document_id[:12]}")
            query = select(TagRow.tag).where(TagRow.document_id == document_id).order_by(TagRow.tag)
            return _entry(row, tuple(session.scalars(query)))

    def document(self, document_id: str) -> Document:
        """A document whole."""
        with self.transaction() as session:
            row = session.get(DocumentRow, document_id)
            text = session.get(TextRow, document_id)
            if row is None or text is None:
                raise DocumentNotFound(f"{self.where} holds no document {document_id[:12]}")
            pages = session.scalars(
                select(PageRow).where(PageRow.document_id == document_id).order_by(PageRow.number)
            ).all()
            sections = session.scalars(
                select(SectionRow)
                .where(SectionRow.document_id == document_id)
                .order_by(SectionRow.position)
            ).all()
            problems = session.scalars(
                select(ProblemRow)
                .where(ProblemRow.document_id == document_id)
                .order_by(ProblemRow.position)
            ).all()
        return Document(
            id=row.id,
            name=row.name,
            title=row.title,
            media_type=row.media_type,
            text=text.text,
            pages=tuple(Page(p.number, p.label, Span(p.start, p.end), p.source) for p in pages),
            sections=tuple(Section(s.title, s.level, Span(s.start, s.end)) for s in sections),
            problems=tuple(Problem(p.what, p.remedy, p.page) for p in problems),
            paged=row.paged,
            size_bytes=row.size_bytes,
            language=row.language,
        )

    def problems(self, document_id: str) -> list[Problem]:
        """What could not be read of a document."""
        with self.transaction() as session:
            query = select(ProblemRow).where(ProblemRow.document_id == document_id)
            rows = session.scalars(query.order_by(ProblemRow.position)).all()
        return [Problem(p.what, p.remedy, p.page) for p in rows]

    def num_problems(self) -> dict[str, int]:
        """How many problems each document has; those without any are left out."""
        with self.transaction() as session:
            query = select(ProblemRow.document_id, func.count()).group_by(ProblemRow.document_id)
            return {row[0]: row[1] for row in session.execute(query)}

    # ---- what searching needs (retrieval.types.Shelf) ---------------------------------------

    def generation(self) -> int:
        """Grows with every document that is added or deleted, by any process."""
        with self.transaction() as session:
            counter = session.get(Counter, "generation")
            return counter.value if counter else 0

    def document_ids(self) -> set[str]:
        """All documents that are wholly in."""
        with self.transaction() as session:
            return set(session.scalars(select(DocumentRow.id).where(DocumentRow.state == "ready")))

    def first_chunks(self) -> dict[str, int]:
        """Documents that are wholly in, and the number of each's first chunk; -1 without any."""
        first = (
            select(func.min(ChunkRow.id))
            .where(ChunkRow.document_id == DocumentRow.id)
            .scalar_subquery()
        )
        ready = select(DocumentRow.id, func.coalesce(first, -1)).where(DocumentRow.state == "ready")
        with self.transaction() as session:
            return dict(session.execute(ready).all())

    def chunks(self, document_id: str) -> list[Span]:
        """A document's chunks, in order."""
        with self.transaction() as session:
            rows = session.execute(
                select(ChunkRow.start, ChunkRow.end)
                .where(ChunkRow.document_id == document_id)
                .order_by(ChunkRow.id)
            ).all()
        return [Span(start, end) for start, end in rows]

    def chunk_ids(self, document_id: str) -> NDArray[np.int64]:
        """Numbers of a document's chunks in document order, ascending, [num_chunks]."""
        with self.transaction() as session:
            query = select(ChunkRow.id).where(ChunkRow.document_id == document_id)
            return np.array(session.scalars(query.order_by(ChunkRow.id)).all(), dtype=np.int64)

    def vectors(self, document_id: str, embedder: str) -> NDArray[np.float32] | None:
        """Unit vectors of a document's chunks, float32 [num_chunks, dim]; None if never made."""
        with self.transaction() as session:
            rows = session.scalars(
                select(VectorRow)
                .where(VectorRow.document_id == document_id, VectorRow.embedder == embedder)
                .order_by(VectorRow.first)
            ).all()
            query = select(func.count()).where(ChunkRow.document_id == document_id)
            num_chunks = session.scalar(query) or 0
        if not rows or sum(row.count for row in rows) != num_chunks:
            return None
        parts = [np.frombuffer(row.data, dtype=np.float16).reshape(row.count, -1) for row in rows]
        return np.concatenate(parts).astype(np.float32)

    def without_vectors(self, embedder: str) -> list[str]:
        """Documents of which some chunk has no vector by this embedder."""
        made = (
            select(func.coalesce(func.sum(VectorRow.count), 0))
            .where(VectorRow.document_id == DocumentRow.id, VectorRow.embedder == embedder)
            .scalar_subquery()
        )
        needed = (
            select(func.count()).where(ChunkRow.document_id == DocumentRow.id).scalar_subquery()
        )
        with self.transaction() as session:
            query = select(DocumentRow.id).where(DocumentRow.state == "ready", made < needed)
            return list(session.scalars(query))

    def chunk_texts(self, document_id: str) -> list[tuple[str, str]]:
        """(header, text) of a document's chunks, in order; header: title and section path."""
        document = self.document(document_id)
        return [(header(document, c), c.of(document.text)) for c in self.chunks(document_id)]

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[str, Span]]:
        """Document and span of each chunk number; deleted numbers are left out."""
        found: dict[int, tuple[str, Span]] = {}
        with self.transaction() as session:
            for at in range(0, len(chunk_ids), _AT_ONCE):
                part = [int(number) for number in chunk_ids[at : at + _AT_ONCE]]
                # Columns and not rows of the table: objects of the ORM take three times as long.
                columns = ChunkRow.id, ChunkRow.document_id, ChunkRow.start, ChunkRow.end
                query = select(*columns).where(ChunkRow.id.in_(part))
                for number, document_id, start, end in session.execute(query):
                    found[number] = (document_id, Span(start, end))
        return found

    # ---- changing --------------------------------------------------------------------------

    def rename(self, document_id: str, title: str) -> None:
        """Gives a document another title."""
        self._update(document_id, title=title)

    def set_file_name(self, document_id: str, name: str) -> None:
        """Gives a document another file name."""
        self._update(document_id, name=name)

    def _update(self, document_id: str, **values: str) -> None:
        with self.writing() as session:
            done = session.execute(
                update(DocumentRow).where(DocumentRow.id == document_id).values(**values)
            )
            if not done.rowcount:  # type: ignore[attr-defined]
                raise DocumentNotFound(f"{self.where} holds no document {document_id[:12]}")

    def tag(self, document_id: str, tags: Sequence[str]) -> None:
        """Puts these tags on a document in place of those it had."""
        with self.writing() as session:
            if session.get(DocumentRow, document_id) is None:
                raise DocumentNotFound(f"{self.where} holds no document {document_id[:12]}")
            session.execute(delete(TagRow).where(TagRow.document_id == document_id))
            session.add_all(TagRow(document_id=document_id, tag=tag) for tag in dict.fromkeys(tags))

    def delete(self, document_id: str) -> Entry:
        """Removes a document and all that hangs on it, and gives the room back."""
        entry = self.entry(document_id)
        with self.writing() as session:
            forget_document(session, document_id)
            session.execute(delete(DocumentRow).where(DocumentRow.id == document_id))
            session.execute(  # that it was read in is told by its name
                delete(JobRow).where(JobRow.document_id == document_id, JobRow.state == "done")
            )
            grow(session, "generation")
        self.reclaim()
        return entry

    def reclaim(self) -> None:
        """Overwritten pages leave the journal too, and the file shrinks (SQLite only)."""
        if self._engine.dialect.name != "sqlite":
            return
        with explained(self.where), self._engine.connect() as connection:
            driver = connection.connection.driver_connection
            if driver is not None:
                driver.execute("PRAGMA incremental_vacuum").fetchall()
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def header(document: Document, chunk: Span) -> str:
    """Title and section path of a chunk, as it is embedded before the chunk's text (DAPR)."""
    return " › ".join((document.title, *document.section_path(chunk.start)))


def grow(session: Session, name: str) -> None:
    """Adds one to a counter of the library."""
    more = update(Counter).where(Counter.name == name).values(value=Counter.value + 1)
    if session.execute(more).rowcount:  # type: ignore[attr-defined]
        return
    try:
        with session.begin_nested():
            session.add(Counter(name=name, value=1))
    except IntegrityError:  # another process counted first
        session.execute(more)


def _entry(row: DocumentRow, tags: tuple[str, ...]) -> Entry:
    return Entry(
        id=row.id,
        name=row.name,
        title=row.title or row.name,
        media_type=row.media_type,
        language=row.language,
        paged=row.paged,
        size_bytes=row.size_bytes,
        file=row.file,
        added_at=row.added_at,
        state="ready" if row.state == "ready" else "reading",
        num_pages=row.num_pages,
        pages_read=row.pages_read,
        num_words=row.num_words,
        tags=tags,
    )
