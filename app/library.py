"""A library of documents: add, ask, read, search, list, show, rename, tag, delete."""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from agents.answer import Answer, Citation, cite
from agents.desk import Desk, Scope
from agents.steps import Opening, Reader, Step
from app.bulk import Trouble, add_many, expanded
from app.conversations import Conversations
from app.courtesy import Courtesy
from app.engines import Engines
from app.ingest import Ingest
from app.lookup import clean, find, readable
from app.memories import memories_of
from app.place import Place, locate_library
from app.progress import OnProgress, silent
from app.settings import Settings
from app.shelf_files import Files
from app.source_view import Sources
from app.warmer import ReadAhead, Warmer, read_ahead
from memory.database import connect
from memory.document import Document, Problem
from memory.errors import DocumentError, DocumentNotFound, EmptyDocument, LibraryReadOnly
from memory.job_book import JobBook
from memory.memories import Memories
from memory.store import Entry, Store
from retrieval.types import Embedder, Passage
from serving.errors import GistreeError, MissingExtra
from serving.model import LanguageModel, Usage
from serving.plugins import make, names

if TYPE_CHECKING:
    from app.batch.run import Event, Totals
    from app.jobs import Jobs
    from memory.verify import Flaw
    from retrieval.searcher import Searcher

log = logging.getLogger(__name__)

CHUNK_TOKENS = 240
"""With title and section before it, about what the default embedder reads at once."""
_DOCUMENTS_IN_MEMORY = 16


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be added, and why.

    Attributes:
        path: The file, or its address.
        error: What happened, in words.
    """

    path: Path | str
    error: GistreeError


class Library:
    """Documents and everything that is known of them. Use it in a ``with`` block, or close it.

    Several threads and several processes may use one library at a time.
    """

    def __init__(
        self,
        place: str | Path | None = None,
        *,
        read_only: bool = False,
        settings: Settings | None = None,
        model: LanguageModel | None = None,
        embedder: Embedder | None = None,
        engines: Engines | None = None,
    ) -> None:
        """Opens a library, or makes one.

        Args:
            place: A folder, or the URL of a database; the settings' library where not given.
            read_only: Change nothing, not even what is derived.
            settings: Where not given: the environment, then the settings file.
            model: A language model to use instead of what the settings name.
            embedder: An embedder to use likewise.
            engines: What several libraries answer with, in place of these three; whoever hands
                them in closes them.

        Raises:
            LibraryError: it cannot be opened.
        """
        self._engines_are_shared = engines is not None
        if engines is None:
            engines = Engines(settings or Settings(), model=model, embedder=embedder)
        self.engines = engines
        settings = engines.settings
        self.place: Place = locate_library(place or settings.library, read_only=read_only)
        self.read_only = self.place.read_only
        self._lock = threading.RLock()
        self._documents: dict[str, Document] = {}
        # Of which generation and embedder it is known that all documents have vectors; and ids of
        # all documents, with their generation.
        self._embedded: tuple[int, str] | None = None
        self._listed: tuple[int, tuple[str, ...]] = (-1, ())
        self._files = Files(self.place.files)
        # Where the database is lost, a new one would know none of the files, and they would go.
        self._store = Store(
            connect(self.place.url),
            where=str(self.place),
            read_only=self.read_only,
            may_begin=not self._files.has_any,
        )
        if not self.read_only:
            self._files.sweep(lambda: [entry.file for entry in self._store.entries(state=None)])

    def __enter__(self) -> Self:
        """The library itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Gives back connections, indexes and the model."""
        if "conversations" in self.__dict__:
            self.conversations.close()
        if "sources" in self.__dict__:
            self.sources.close()
        with self._lock:
            if "_searcher" in self.__dict__:
                self._searcher.close()
                del self.__dict__["_searcher"]
            if not self._engines_are_shared:
                self.engines.close()
            self._store.close()

    # ---- documents in ----------------------------------------------------------------------

    def add(
        self,
        source: str | Path | bytes,
        *,
        name: str | None = None,
        password: str | None = None,
        tags: Sequence[str] = (),
        on_progress: OnProgress = silent,
    ) -> Entry:
        """Adds one document. Adding the same bytes again does nothing.

        Args:
            source: A file, or its bytes.
            name: What to call it; the file's name where not given. Needed for bytes.
            password: For an encrypted file.
            tags: Put on it.
            on_progress: Told how far it is.

        Raises:
            DocumentError: it cannot be read; the library is as before.
            MissingExtra: it could be read with an extra; likewise.
            LibraryError: the library cannot take it.
        """
        self._writable()
        if isinstance(source, bytes):
            if not name:
                raise ValueError("bytes need a name, for example name='report.pdf'")
            with tempfile.TemporaryDirectory(prefix="gistree-") as folder:
                path = Path(folder) / f"document{Path(clean(name)).suffix}"
                path.write_bytes(source)
                return self._add(path, name, password, tags, on_progress)
        path = readable(source, "file")
        if path.is_dir():
            raise DocumentError(
                f"{clean(str(path))} is a folder; add it with add_folder, or `gistree add`"
            )
        if not path.is_file():
            raise DocumentNotFound(f"there is no file {clean(str(path))}")
        return self._add(path, name or path.name, password, tags, on_progress)

    def _add(
        self,
        path: Path,
        name: str,
        password: str | None,
        tags: Sequence[str],
        on_progress: OnProgress,
    ) -> Entry:
        if path.stat().st_size == 0:
            raise EmptyDocument(f"{clean(name)} is empty: it has no bytes")
        entry = self._ingest.add(path, name=clean(name), password=password, on_progress=on_progress)
        if tags:
            self.tag(entry.id, *entry.tags, *tags)
        return self._store.entry(entry.id)

    def add_folder(
        self,
        folder: str | Path,
        *,
        password: str | None = None,
        tags: Sequence[str] = (),
        workers: int = 1,
        on_progress: OnProgress = silent,
    ) -> tuple[tuple[Entry, ...], tuple[Failure, ...]]:
        """Adds every file under a folder; a file that cannot be read does not stop the others.

        Args:
            folder: Hidden files in it are left out.
            password: For encrypted files.
            tags: Put on each.
            workers: Files that are read at a time.
            on_progress: Told how far each is.

        Returns:
            What was added (or was there already), and what failed.

        Raises:
            DocumentNotFound: no such folder, or no file in it.
        """
        folder = readable(folder, "folder")
        if not folder.is_dir():
            raise DocumentNotFound(f"there is no folder {clean(str(folder))}")
        paths, unread = expanded(str(folder), but=self.place.folder)
        done = dict(
            self.add_many(
                paths, password=password, tags=tags, workers=workers, on_progress=on_progress
            )
        )
        ended = [*((path, done[path]) for path in paths), *unread]
        return (
            tuple(entry for _, entry in ended if isinstance(entry, Entry)),
            tuple(Failure(path, why) for path, why in ended if not isinstance(why, Entry)),
        )

    def add_many(
        self,
        paths: Iterable[Path],
        *,
        password: str | None = None,
        tags: Sequence[str] = (),
        workers: int = 1,
        on_progress: OnProgress = silent,
    ) -> Iterator[tuple[Path, Entry | Trouble]]:
        """Adds files and gives each as it is finished, with what became of it.

        Args:
            paths: Files; those that the library has already cost a look.
            password: For encrypted files.
            tags: Put on each.
            workers: Files that are read at a time.
            on_progress: Told how far each is.

        Raises:
            LibraryError: the library takes no more; what was finished is kept.
        """
        self._writable()

        def add(path: Path, tell: OnProgress) -> Entry:
            return self.add(path, password=password, tags=tags, on_progress=tell)

        return add_many(add, paths, workers=workers, on_progress=on_progress)

    def finish_interrupted(self, *, on_progress: OnProgress = silent) -> tuple[Entry, ...]:
        """Finishes, or rolls back, what a process that died was adding.

        Returns:
            The documents that are now wholly in.
        """
        self._writable()
        finished = []
        for entry in self._store.entries(state="reading"):
            try:
                done = self._ingest.resume(entry, on_progress=on_progress)
            except (DocumentError, MissingExtra):
                continue  # it could not be read then either; it is out of the library again
            if done is not None:
                finished.append(done)
        return tuple(finished)

    # ---- looking ---------------------------------------------------------------------------

    def list(self, *, tag: str | None = None) -> tuple[Entry, ...]:
        """The documents, the oldest first; with a tag, those that bear it."""
        return tuple(e for e in self._store.entries() if tag is None or tag in e.tags)

    def show(self, document: str, *, exact: bool = False) -> Entry:
        """One document's entry, by id (or its beginning), name, title or, unless exact, a part.

        Raises:
            DocumentNotFound: there is none, or several fit.
        """
        return find(self._store.entries(), document, exact=exact)

    def document(self, document: str) -> Document:
        """One document whole: text, pages, sections, problems."""
        return self._document(self.show(document).id)

    def problems(self, document: str) -> tuple[Problem, ...]:
        """What could not be read of a document, in words; quicker than the document whole."""
        return tuple(self._store.problems(self.show(document).id))

    def num_problems(self) -> dict[str, int]:
        """How many problems each document has, by id; those without any are left out."""
        return self._store.num_problems()

    def file(self, document: str) -> Path:
        """The library's own copy of a document's file."""
        return self._files.path(self.show(document).file)

    def _document(self, key: str) -> Document:
        with self._lock:
            if key not in self._documents:
                while len(self._documents) >= _DOCUMENTS_IN_MEMORY:
                    self._documents.pop(next(iter(self._documents)))
                self._documents[key] = self._store.document(key)
            return self._documents[key]

    # ---- changing --------------------------------------------------------------------------

    def rename(self, document: str, title: str) -> Entry:
        """Gives a document another title."""
        self._writable()
        key = self.show(document).id
        title = clean(title).strip()
        if not title:
            raise ValueError("a title needs at least one character")
        self._store.rename(key, title)
        self._documents.pop(key, None)
        return self._store.entry(key)

    def tag(self, document: str, *tags: str) -> Entry:
        """Puts these tags on a document in place of those it had; none takes all away."""
        self._writable()
        key = self.show(document).id
        self._store.tag(key, [clean(tag).strip()[:200] for tag in tags if tag.strip()])
        return self._store.entry(key)

    def delete(self, document: str) -> Entry:
        """Removes a document and everything made of it: text, chunks, vectors, words, its file.

        Its whole name, its title or eight characters of its id are wanted.
        """
        self._writable()
        entry = self._store.delete(self.show(document, exact=True).id)
        self._files.remove(entry.file)
        self._documents.pop(entry.id, None)
        self.sources.forget(entry.id)
        self._searcher.sync()
        return entry

    def discard(self, document_id: str) -> bool:
        """Removes a document that is not wholly in, unless somebody is reading it in.

        Returns:
            Whether there is nothing of it now.
        """
        self._writable()
        return self._ingest.discard(document_id)

    # ---- care ------------------------------------------------------------------------------

    def check(self, *, repair: bool = False) -> "Iterator[Flaw]":
        """Looks everything over: files, texts, spans, vectors, indexes; gives flaws as found.

        Args:
            repair: Make what is derived again where it is wrong.
        """
        from app.check import Check

        if repair:
            self._writable()
            self.finish_interrupted()
        check = Check(
            store=self._store,
            files=self._files,
            ingest=self._ingest,
            embedder=self.embedder,
            searcher=lambda: self._searcher,
            rebuild=self._rebuild_indexes,
        )
        return check.run(repair=repair)

    def _rebuild_indexes(self) -> "Searcher":
        with self._lock:
            self._searcher.close()
            del self.__dict__["_searcher"]
            shutil.rmtree(self.place.index, ignore_errors=True)
            self._searcher.sync()
            return self._searcher

    def backup(self, file: str | Path) -> int:
        """Writes the library to one file, while others may go on writing; returns documents.

        Raises:
            LibraryError: it lies in PostgreSQL, or the file cannot be written.
        """
        from app.backup import backup

        return backup(self.place, Path(file))

    @cached_property
    def jobs(self) -> "Jobs":
        """Work that is done in the background; a foreman (``app.foreman``) has it done."""
        from app.jobs import Jobs

        return Jobs(self, JobBook(self._store))

    # ---- finding and answering ---------------------------------------------------------------

    def search(
        self, query: str, *, documents: Collection[str] | None = None, top_k: int = 10
    ) -> tuple[Citation, ...]:
        """The passages nearest to a query, the best first.

        Args:
            query: Words or a question.
            documents: Look in these only (ids, names or titles).
            top_k: How many.
        """
        return tuple(
            cite(self._document(p.document_id), p.span, p.score)
            for p in self._search(query, self._scope(documents), top_k)
        )

    def ask(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
    ) -> Answer:
        """An answer with its citations; the last step of ``read``."""
        steps = self.read(question, documents=documents, reader=reader, budget_tokens=budget_tokens)
        for step in steps:
            if isinstance(step, Answer):
                return step
        raise TypeError(f"the reader {reader!r} ended without an answer")

    def read(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
        unattended: bool = False,
    ) -> Iterator[Step]:
        """The steps towards an answer, as they are taken; the last one is the ``Answer``.

        Args:
            question: What to find out.
            documents: Ask these only (ids, names or titles); all where not given.
            reader: Name of a reader, with options as in "oprag:top_k=20"; the settings' one where
                not given.
            budget_tokens: Most tokens of document text in a prompt.
            unattended: Nobody waits for it, so that batches need not stand back.

        Raises:
            UnknownName: no such reader.
            DocumentNotFound: no such document, or an empty library.
            ModelNotFound: no language model is at hand.
        """
        if not clean(question).strip():
            raise ValueError("a question needs at least one word")
        plan: Reader = make("agents.readers", reader or self.settings.reader)
        keys = self._scope(documents)
        if not keys:
            raise DocumentNotFound("the library is empty; add a document: gistree add FILE")
        desk = self._desk(keys, budget_tokens)
        asking = nullcontext(_nobody_waits) if unattended else self.courtesy.asking()
        with asking as goes_on, self.engines.reading():
            for step in plan.read(desk, clean(question)):
                goes_on()
                if isinstance(step, Answer):
                    _log_answer(step, len(keys))
                yield step

    def warm(
        self,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
    ) -> ReadAhead:
        """Has the model read ahead what every question to these documents begins with.

        The first question then finds it in the prefix cache. Nothing is done for readers whose
        prompts hold what a search finds. It ends early where a question is asked meanwhile, also in
        another process. Arguments and errors are those of ``read``.

        Returns:
            Tokens spent, and whether all was read.
        """
        plan: Reader = make("agents.readers", reader or self.settings.reader)
        keys = self._scope(documents)
        if not keys or not isinstance(plan, Opening):
            return ReadAhead()
        with self.engines.reading():
            messages = plan.opening(self._desk(keys, budget_tokens))
            if messages is None:
                return ReadAhead()
            return read_ahead(self.model, messages, self.courtesy.somebody_asks)

    @cached_property
    def warmer(self) -> Warmer:
        """Calls ``warm`` in the background."""
        return Warmer(self)

    def _desk(self, keys: tuple[str, ...], budget_tokens: int | None) -> Desk:
        return Desk(
            documents=keys,
            search=lambda query, top_k: self._search(query, keys, top_k),
            document=self._document,
            model=self.model,
            embedder=self.embedder,
            pruner=self.engines.pruner,
            budget_tokens=budget_tokens or self.settings.budget_tokens or self.usual_budget,
            tokens_per_s=self.engines.pace,
            memories=self.memories,
        )

    @property
    def courtesy(self) -> Courtesy:
        """Whether somebody waits for an answer on this machine."""
        return Courtesy(self.settings.models / "asking")

    def batch(
        self,
        source: str | Path,
        out: str | Path,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
        each_document: bool = False,
        fields: bool = False,
        in_order: bool = False,
        limit: int = 0,
        retry_failed: bool = False,
        redo: bool = False,
        at_once: int = 0,
        on: str = "",
        on_event: "Callable[[Event], None] | None" = None,
    ) -> "Totals":
        """Answers a file of questions; run again, it goes on where it was ended.

        Args:
            source: Questions: .jsonl, .csv, .parquet or .xlsx, a path or a URL; see
                ``app.batch.batch.Batch``, also for what is not said here.
            out: Answers likewise.
            documents: Of rows that name none; all where not given.
            reader: Likewise.
            budget_tokens: Likewise.
            each_document: Every question is asked of each document by itself.
            fields: The source is a JSON schema of fields, and the answers are a table, one row a
                document.
            in_order: Answers stand in the order of the questions.
            limit: The first so many rows only; 0 for all.
            retry_failed: Rows that failed before are asked again.
            redo: Answers made with other settings are thrown away.
            at_once: Rows at a time; 0 finds it by measuring.
            on: A cluster of Ray's that answers; else this process does.
            on_event: Told of every row that is done, and of waiting.

        Raises:
            BatchError: the questions or the output cannot be used, or settings have changed.
        """
        from app.batch.batch import Batch
        from app.batch.remote import at_hand
        from app.batch.run import RowDone, Totals

        usage = Usage()
        with (
            at_hand(source, out, keep=self.place.batches, redo=redo) as (questions, answers),
            Batch(
                library=self,
                source=questions,
                out=answers,
                documents=None if documents is None else tuple(documents),
                reader=reader,
                budget_tokens=budget_tokens,
                each_document=each_document,
                fields=fields,
                in_order=in_order,
                limit=limit,
                retry_failed=retry_failed,
                redo=redo,
                most_at_once=at_once,
                on=on,
            ) as batch,
        ):
            for event in batch.run():
                if isinstance(event, RowDone):
                    usage += event.usage
                if on_event is not None:
                    on_event(event)
            return Totals(batch.total, batch.finished, batch.failed, usage)

    def reach(self, documents: Collection[str] | None = None) -> Scope:
        """What the tools of ``agents.tools`` may reach: these documents and no others.

        Args:
            documents: Ids, names or titles; all documents where not given.

        Raises:
            DocumentNotFound: no such document.
        """
        keys = self._scope(documents)
        return Scope(
            documents=keys,
            search=lambda query, top_k: self._search(query, keys, top_k),
            document=self._document,
            gists=lambda key: self.memories.at_hand(key),
        )

    @property
    def memories(self) -> Memories:
        """Gist memories and memory trees of the documents, as the language model makes them."""
        return memories_of(
            self._store,
            self._document,
            model=self.model,
            embedder=self.embedder,
            read_only=self.read_only,
        )

    def _scope(self, documents: Collection[str] | None) -> tuple[str, ...]:
        if documents is None:
            return self._everything()
        if isinstance(documents, str):
            documents = [documents]
        return tuple(dict.fromkeys(self.show(name).id for name in documents))

    def _everything(self) -> tuple[str, ...]:
        """Ids of all documents; listed again only after a change, since there may be thousands."""
        generation = self._store.generation()
        listed, keys = self._listed
        if listed != generation:
            keys = tuple(entry.id for entry in self._store.entries())
            self._listed = generation, keys
        return keys

    def _search(self, query: str, keys: tuple[str, ...], top_k: int) -> Sequence[Passage]:
        self._embed_missing()
        return self._searcher.search(clean(query), documents=keys, top_k=top_k)

    def _embed_missing(self) -> None:
        """Documents that were added with another embedder get vectors by this one."""
        state = self._store.generation(), self.embedder.name
        if state == self._embedded:
            return
        for key in self._store.without_vectors(self.embedder.name):
            self._writable()
            self._ingest.embed(self._store.entry(key), on_progress=silent)
        self._embedded = state

    @cached_property
    def conversations(self) -> Conversations:
        """The chats that are kept in this library."""
        return Conversations(self, self._store, default_reader=self.settings.reader)

    @cached_property
    def sources(self) -> Sources:
        """The documents as a person looks at them."""
        return Sources(self.document, self.file)

    # ---- the parts, made when first needed -----------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self.engines.settings

    @property
    def model(self) -> LanguageModel:
        """The language model."""
        return self.engines.model

    @property
    def embedder(self) -> Embedder:
        """The embedder."""
        return self.engines.embedder

    @property
    def usual_budget(self) -> int:
        """Tokens of document text in a prompt that suit the model."""
        return self.engines.usual_budget

    def use(self, settings: Settings) -> None:
        """Takes other settings from now on; a question that is being answered keeps its model.

        Raises:
            ModelNotFound: they name a model that is not there.
        """
        self.engines.use(settings)

    def rest(self, idle_s: float) -> bool:
        """Gives the language model's memory back where nobody has asked for so long.

        The next question opens it again, which takes seconds. A model that was handed in stays.

        Args:
            idle_s: Seconds.

        Returns:
            Whether it was given back now.
        """
        return self.engines.rest(idle_s)

    def without_vectors(self) -> int:
        """How many documents have no vectors by the embedder in use."""
        return len(self._store.without_vectors(self.settings.embedder))

    @cached_property
    def _searcher(self) -> "Searcher":
        from retrieval.reranker import CrossEncoderReranker
        from retrieval.searcher import Searcher

        wanted = self.settings.reranker
        reranker = CrossEncoderReranker(wanted) if wanted else None
        return Searcher(
            self._store,
            self.embedder,
            self.place.index,
            reranker=reranker,
            vectors_in_memory=self.settings.vectors_in_memory,
        )

    @cached_property
    def _ingest(self) -> Ingest:
        return Ingest(
            store=self._store,
            files=self._files,
            embedder=lambda: self.embedder,
            chunk_tokens=CHUNK_TOKENS,
        )

    def _writable(self) -> None:
        if self.read_only:
            raise LibraryReadOnly(f"{self.place} was opened for reading only")


def _nobody_waits() -> None:
    """Nothing."""


def _log_answer(answer: Answer, num_documents: int) -> None:
    log.info(
        "answered",
        extra={
            "reader": answer.reader,
            "model": answer.model,
            "found": answer.found,
            "documents": num_documents,
            "seconds": round(answer.seconds, 3),
            **asdict(answer.usage),
        },
    )


def readers() -> tuple[str, ...]:
    """Names of the readers."""
    return names("agents.readers")


def open_library(
    place: str | Path | None = None,
    *,
    read_only: bool = False,
    settings: Settings | None = None,
    model: LanguageModel | None = None,
    embedder: Embedder | None = None,
) -> Library:
    """Opens a library; see ``Library``."""
    return Library(place, read_only=read_only, settings=settings, model=model, embedder=embedder)
