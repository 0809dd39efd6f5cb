"""The database's tables. Everything that hangs on a document goes when the document goes."""

import hashlib
from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Integer, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from memory.document import PageSource

DocumentId = String(64)
RowNumber = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by INTEGER only


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, kept as ISO text so that it reads the same in every database."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """To text."""
        return value.isoformat(timespec="microseconds") if value else None

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """From text."""
        return datetime.fromisoformat(value) if value else None


def text_digest(text: str) -> str:
    """SHA-256 of a document's text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Base(DeclarativeBase):
    """All tables of a library."""


def _document_key() -> Mapped[str]:
    return mapped_column(
        DocumentId, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True
    )


class Counter(Base):
    """Named numbers of the library; "generation" grows with every change that searching sees."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger, default=0)


class DocumentRow(Base):
    """A document. It is seen by readers once ``state`` is "ready".

    While it is being read, ``owner`` names the process at work and ``beat`` is its last sign of
    life, so that another process can take over from a dead one.
    """

    __tablename__ = "documents"
    id: Mapped[str] = mapped_column(DocumentId, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    title: Mapped[str] = mapped_column(Text, default="")
    media_type: Mapped[str] = mapped_column(Text, default="")
    language: Mapped[str] = mapped_column(String(16), default="")
    paged: Mapped[bool] = mapped_column(default=False)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    file: Mapped[str] = mapped_column(Text)
    added_at: Mapped[datetime] = mapped_column(Moment)
    state: Mapped[str] = mapped_column(String(16), index=True)
    owner: Mapped[str] = mapped_column(Text, default="")
    beat: Mapped[float] = mapped_column(default=0.0)
    num_pages: Mapped[int] = mapped_column(default=0)
    pages_read: Mapped[int] = mapped_column(default=0)
    num_words: Mapped[int] = mapped_column(default=0)


class TextRow(Base):
    """The canonical text, apart from the rest because it is large; ``digest`` is its SHA-256."""

    __tablename__ = "texts"
    document_id: Mapped[str] = _document_key()
    text: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(64))


class PageRow(Base):
    """A page of a document."""

    __tablename__ = "pages"
    document_id: Mapped[str] = _document_key()
    number: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(Text)
    start: Mapped[int]
    end: Mapped[int]
    source: Mapped[PageSource] = mapped_column(String(16))


class SectionRow(Base):
    """A section of a document."""

    __tablename__ = "sections"
    document_id: Mapped[str] = _document_key()
    position: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    level: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]


class ProblemRow(Base):
    """Something that could not be read."""

    __tablename__ = "problems"
    document_id: Mapped[str] = _document_key()
    position: Mapped[int] = mapped_column(primary_key=True)
    page: Mapped[int | None]
    what: Mapped[str] = mapped_column(Text)
    remedy: Mapped[str] = mapped_column(Text)


class TagRow(Base):
    """A tag that a person gave."""

    __tablename__ = "tags"
    document_id: Mapped[str] = _document_key()
    tag: Mapped[str] = mapped_column(String(200), primary_key=True)


class ChunkRow(Base):
    """A chunk. Its number is never given twice, so an index can never mistake one for another."""

    __tablename__ = "chunks"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 (SQLAlchemy's own form)
    id: Mapped[int] = mapped_column(RowNumber, primary_key=True, autoincrement=True)
    document_id: Mapped[str] = mapped_column(
        DocumentId, ForeignKey("documents.id", ondelete="CASCADE"), index=True
    )
    start: Mapped[int]
    end: Mapped[int]


class VectorRow(Base):
    """Vectors of ``count`` chunks from position ``first`` of the document on, by one embedder.

    ``data`` is float16 [count, dim] in row order: half the room, and search results do not change.
    """

    __tablename__ = "vectors"
    document_id: Mapped[str] = _document_key()
    embedder: Mapped[str] = mapped_column(String(200), primary_key=True)
    first: Mapped[int] = mapped_column(primary_key=True)
    count: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class ChatRow(Base):
    """A conversation about documents."""

    __tablename__ = "chats"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    begun_at: Mapped[datetime] = mapped_column(Moment)


class TurnRow(Base):
    """A question of a chat and what came of it.

    ``documents``, ``steps`` and ``answer`` are JSON. While it is being answered, ``owner`` names
    the worker and ``beat`` is its last sign of life.
    """

    __tablename__ = "turns"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    chat_id: Mapped[str] = mapped_column(
        String(32), ForeignKey("chats.id", ondelete="CASCADE"), index=True
    )
    question: Mapped[str] = mapped_column(Text)
    documents: Mapped[str] = mapped_column(Text)
    reader: Mapped[str] = mapped_column(Text)
    budget_tokens: Mapped[int]
    again_of: Mapped[str] = mapped_column(String(32), default="")
    asked_at: Mapped[datetime] = mapped_column(Moment)
    state: Mapped[str] = mapped_column(String(16))
    steps: Mapped[str] = mapped_column(Text, default="[]")
    draft: Mapped[str] = mapped_column(Text, default="")
    answer: Mapped[str] = mapped_column(Text, default="")
    error: Mapped[str] = mapped_column(Text, default="")
    feedback: Mapped[str] = mapped_column(String(16), default="")
    owner: Mapped[str] = mapped_column(Text, default="")
    beat: Mapped[float] = mapped_column(default=0.0)


class TurnDocumentRow(Base):
    """A document whose text a turn has seen: when it goes, what the turn holds of it goes."""

    __tablename__ = "turn_documents"
    turn_id: Mapped[str] = mapped_column(
        String(32), ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True
    )
    document_id: Mapped[str] = mapped_column(
        DocumentId,
        ForeignKey("documents.id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
    )


class JobRow(Base):
    """A piece of work that was ordered: it outlives whoever ordered it, and whoever does it.

    ``work`` is a JSON object, what its task needs. ``owner`` and ``beat`` are as with a document.
    """

    __tablename__ = "jobs"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    name: Mapped[str] = mapped_column(Text)
    work: Mapped[str] = mapped_column(Text)
    document_id: Mapped[str] = mapped_column(DocumentId, default="")
    state: Mapped[str] = mapped_column(String(16), index=True)
    not_before: Mapped[float] = mapped_column(default=0.0)
    stage: Mapped[str] = mapped_column(String(16), default="")
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    seconds_left: Mapped[float | None] = mapped_column(default=None)
    said: Mapped[str] = mapped_column(Text, default="")
    error: Mapped[str] = mapped_column(String(64), default="")
    attempts: Mapped[int] = mapped_column(default=0)
    owner: Mapped[str] = mapped_column(Text, default="")
    beat: Mapped[float] = mapped_column(default=0.0)
    created_at: Mapped[datetime] = mapped_column(Moment)
    changed_at: Mapped[datetime] = mapped_column(Moment)


class ArtefactRow(Base):
    """What a model made of a document, or of a part of it: a gist, a break, a summary.

    ``key`` is a hash of everything that it was made from, so a changed prompt or model finds
    nothing old. ``data`` is JSON.
    """

    __tablename__ = "artefacts"
    document_id: Mapped[str] = _document_key()
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    data: Mapped[str] = mapped_column(Text)
    prompt_tokens: Mapped[int] = mapped_column(default=0)
    cached_tokens: Mapped[int] = mapped_column(default=0)
    completion_tokens: Mapped[int] = mapped_column(default=0)
    calls: Mapped[int] = mapped_column(default=0)
    made_at: Mapped[datetime] = mapped_column(Moment)
