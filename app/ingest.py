"""Adding a document: copy, read, chunk, embed, show. Each part is kept as soon as it is done."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from app.owner import Heartbeat, at_work, is_dead
from app.progress import OnProgress, Progress
from app.shelf_files import Files, digest, file_name
from memory.chunker import chunk
from memory.database import explained
from memory.document import Document, Span
from memory.errors import DocumentError, DocumentNotFound
from memory.intake import Intake
from memory.parsing import read_document
from memory.store import Entry, Store, header
from retrieval.types import Embedder
from serving.errors import MissingExtra

log = logging.getLogger(__name__)

_STALE_S = 120.0
_BEAT_S = 20.0
_WAIT_S = 0.5
_EMBED_AT_ONCE = 64  # chunks in one transaction: what a kill can lose


@dataclass(frozen=True, slots=True)
class Ingest:
    """Takes files into a library.

    Attributes:
        store: The database.
        files: The library's copies.
        embedder: Gives the embedder; called once something must be embedded.
        chunk_tokens: Most tokens of a chunk.
    """

    store: Store
    files: Files
    embedder: Callable[[], Embedder]
    chunk_tokens: int

    def add(self, path: Path, *, name: str, password: str | None, on_progress: OnProgress) -> Entry:
        """Takes one file in; does nothing where the library holds the same bytes.

        Raises:
            DocumentError: it cannot be read; the library is as before.
        """
        key = digest(path)
        entry = _new_entry(key, path, name)
        with at_work() as owner:
            intake = Intake(self.store)
            if not self._claimed(entry, intake, owner, on_progress=on_progress):
                on_progress(Progress(name, "done", 1, 1))
                return self.store.entry(key)
            with explained(self.store.where):
                self.files.put(
                    path,
                    entry.file,
                    lambda done: on_progress(Progress(name, "copy", done, entry.size_bytes)),
                )
            return self._finish(entry, intake, owner, password=password, on_progress=on_progress)

    def _claimed(
        self, entry: Entry, intake: Intake, owner: str, *, on_progress: OnProgress
    ) -> bool:
        """Claims a document, waiting for who is at it; False where it is wholly in."""
        dead = ""
        while True:
            holder = intake.claim(entry, owner=owner, now=time.time(), stale_s=_STALE_S, dead=dead)
            if holder is None:
                return True
            if holder == "ready":
                return False
            if holder != dead and is_dead(holder):
                dead = holder
                continue
            on_progress(Progress(entry.name, "wait"))
            time.sleep(_WAIT_S)

    def resume(self, entry: Entry, *, on_progress: OnProgress) -> Entry | None:
        """Goes on with a document whose worker is gone; None where it still lives or is lost.

        A document whose file never arrived whole is rolled back.
        """
        intake = Intake(self.store)
        with at_work() as owner:
            if self._taken(entry, intake, owner) is not None:
                return None
            if not self.files.path(entry.file).exists():
                self.store.delete(entry.id)
                log.info("rolled back document=%s: its file never arrived", entry.id[:12])
                return None
            return self._finish(entry, intake, owner, password=None, on_progress=on_progress)

    def discard(self, document_id: str) -> bool:
        """Removes a document that is not wholly in, with its file, unless its worker lives.

        Returns:
            Whether there is nothing of it now; False also for one that is wholly in.
        """
        try:
            entry = self.store.entry(document_id)
        except DocumentNotFound:
            return True
        with at_work() as owner:
            if self._taken(entry, Intake(self.store), owner) is not None:
                return False
            self.store.delete(entry.id)
        self.files.remove(entry.file)
        return True

    def _taken(self, entry: Entry, intake: Intake, owner: str) -> str | None:
        """Claims a document, also from a dead worker; None, or "ready" or who holds it."""
        holder = intake.claim(entry, owner=owner, now=time.time(), stale_s=_STALE_S)
        if holder is not None and is_dead(holder):
            holder = intake.claim(
                entry, owner=owner, now=time.time(), stale_s=_STALE_S, dead=holder
            )
        return holder

    def _finish(
        self,
        entry: Entry,
        intake: Intake,
        owner: str,
        *,
        password: str | None,
        on_progress: OnProgress,
    ) -> Entry:
        begun = time.perf_counter()

        def beat() -> bool:
            return intake.beat(entry.id, owner=owner, now=time.time())

        with Heartbeat(beat, every_s=_BEAT_S) as heart:
            try:
                if not self.store.chunk_ids(entry.id).size:
                    self._read(entry, intake, password=password, on_progress=on_progress)
                self.embed(entry, lost=heart.lost.is_set, on_progress=on_progress)
            except (DocumentError, MissingExtra) as error:
                self.store.delete(entry.id)
                self.files.remove(entry.file)
                log.info("not added", extra={"document": entry.id, "error": type(error).__name__})
                raise
            except BaseException:
                # Interrupted: what is done stays, and the next start goes on from there.
                intake.unclaim(entry.id, owner=owner)
                raise
            intake.finish(entry.id)
        log.info(
            "added",
            extra={
                "document": entry.id,
                "bytes": entry.size_bytes,
                "chunks": int(self.store.chunk_ids(entry.id).size),
                "seconds": round(time.perf_counter() - begun, 3),
            },
        )
        on_progress(Progress(entry.name, "done", 1, 1))
        return self.store.entry(entry.id)

    def _read(
        self, entry: Entry, intake: Intake, *, password: str | None, on_progress: OnProgress
    ) -> None:
        document = read_document(
            self.files.path(entry.file),
            name=entry.name,
            password=password,
            on_progress=lambda p: on_progress(
                Progress(entry.name, "read", p.pages_done, p.pages_total)
            ),
        )
        document = replace(document, id=entry.id, name=entry.name, size_bytes=entry.size_bytes)
        chunks = chunk(
            document, count_tokens=self.embedder().token_counts, max_tokens=self.chunk_tokens
        )
        intake.put_text(document, chunks)

    def embed(
        self, entry: Entry, *, lost: Callable[[], bool] = lambda: False, on_progress: OnProgress
    ) -> None:
        """Embeds the chunks of a document that have no vectors by this embedder yet."""
        embedder, intake = self.embedder(), Intake(self.store)
        document = self.store.document(entry.id)
        chunks = self.store.chunks(entry.id)
        for first in range(
            intake.num_embedded(entry.id, embedder.name), len(chunks), _EMBED_AT_ONCE
        ):
            if lost():
                raise DocumentError(f"{entry.name} was deleted while it was being read")
            on_progress(Progress(entry.name, "embed", first, len(chunks)))
            texts = [
                embedded_text(document, span) for span in chunks[first : first + _EMBED_AT_ONCE]
            ]
            intake.put_vectors(
                entry.id, embedder=embedder.name, first=first, vectors=embedder.embed(texts)
            )
        on_progress(Progress(entry.name, "embed", len(chunks), len(chunks)))


def embedded_text(document: Document, span: Span) -> str:
    """What of a chunk is embedded: its title and section path, then its words (DAPR)."""
    return f"{header(document, span)}\n{span.of(document.text)}"


def _new_entry(key: str, path: Path, name: str) -> Entry:
    return Entry(
        id=key,
        name=name,
        title="",
        media_type="",
        language="",
        paged=False,
        size_bytes=path.stat().st_size,
        file=file_name(key, Path(name).suffix[:16]),
        added_at=datetime.now(UTC),
        state="reading",
        num_pages=0,
        pages_read=0,
        num_words=0,
    )
