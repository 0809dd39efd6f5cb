"""Word search (BM25) over the shelf's passages: a tantivy index in a folder.

Measured against SQLite FTS5 and bm25s with ``bench/words.py``. The index is derived: it is synced
with the shelf by document, and one that is missing, damaged or of another layout is built anew.
"""

import logging
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from memory.errors import DocumentNotFound
from retrieval.errors import RetrievalError
from retrieval.types import Shelf
from retrieval.word_files import damaged
from retrieval.words import index_words, query_words

_log = logging.getLogger(__name__)
_LAYOUT = "1"  # of the schema and the way texts become words; another one is not read
_HEAP_BYTES = 50_000_000
SMALL = 20_000
"""Passages that are written anew in about two seconds."""
_MOST_WORDS = 64  # of a query; past that, further words cost time and change little


class WordIndex:
    """Passages by the words they share with a query.

    Safe for many threads and processes: one writes at a time (the others wait), and everyone reads
    what was last committed. English words are compared by their stems; on text in other languages
    that was measured to do no harm.

    Args:
        folder: Where the index lies; made where missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "writer.lock")
        with self._lock:
            self._index, self._schema, self._analyzer = self._open()

    def sync(self, shelf: Shelf, *, verify: bool = False) -> None:
        """Makes the index hold the shelf's documents and no others, at once for every reader.

        Where documents went, a small index is written anew, so that none of their words stay in
        its files; a large one marks them deleted, and is written anew when they are a fifth.

        Args:
            shelf: The documents.
            verify: Also replaces documents whose chunk numbers are no longer those of the shelf.

        Raises:
            RetrievalError: the folder cannot be written.
        """
        with self._lock:
            # In this order: what another process has put into the index is on the shelf by now.
            try:
                held = self.document_ids()
            except ValueError:  # someone has removed or damaged its files
                self._index, self._schema, self._analyzer = self._open()
                held = self.document_ids()
            wanted = shelf.document_ids()
            gone = held - wanted
            if verify:
                gone |= {each for each in held & wanted if not self._is_current(shelf, each)}
            if not gone and held == wanted:
                return
            if gone and self._searcher().num_docs <= SMALL:
                self._write(shelf, remove=None, add=wanted)
                return
            self._write(shelf, remove=gone, add=wanted - (held - gone))
            if self._deleted_share() > 1 / 5:
                self._write(shelf, remove=None, add=shelf.document_ids())

    def document_ids(self) -> set[str]:
        """Documents with passages in the index, as last committed by any process."""
        import tantivy

        self._index.reload()
        every = tantivy.Query.all_query()  # without it deleted documents are counted too
        return {each for each, _ in self._searcher().terms_with_prefix("document", "", every)}

    def search(
        self, query: str, top_k: int, *, documents: Collection[str] | None = None
    ) -> list[tuple[int, float]]:
        """Chunk numbers and BM25 scores of the best passages, best first.

        Args:
            query: Any text; its first 64 different words count.
            top_k: Most passages.
            documents: Only these are searched; None searches all.
        """
        import tantivy

        words = self._analyzer.analyze(" ".join(query_words(query)))
        if not words or not top_k or (documents is not None and not documents):
            return []
        make, occur = tantivy.Query, tantivy.Occur
        wanted = make.boolean_query(
            [
                (occur.Should, make.term_query(self._schema, "words", word, index_option="freq"))
                for word in list(dict.fromkeys(words))[:_MOST_WORDS]
            ]
        )
        if documents is not None:
            only = make.term_set_query(self._schema, "document", list(documents))
            filtered = [(occur.Must, make.const_score_query(only, 0.0)), (occur.Must, wanted)]
            wanted = make.boolean_query(filtered)
        searcher = self._searcher()
        try:
            hits = searcher.search(wanted, top_k, count=False).hits
            numbers = searcher.fast_field_values("chunk", [address for _, address in hits])
        except ValueError as damage:
            raise RetrievalError(
                f"the word index in {self._folder} is damaged; gistree check builds it "
                f"anew: {damage}"
            ) from damage
        return [(number, score) for number, (score, _) in zip(numbers, hits, strict=True)]

    def holds(self, shelf: Shelf, document_id: str) -> bool:
        """Whether all chunks of a document are here, by their numbers on the shelf."""
        import tantivy

        there = shelf.chunk_ids(document_id)
        mine = tantivy.Query.term_query(self._schema, "document", document_id, "basic")
        count = self._searcher().search(mine, 1, count=True).count or 0
        return count == len(there) and (not count or self._is_current(shelf, document_id))

    def rare_share(self, query: str) -> float:
        """Share of a query's different words that some passages hold, but at most one in fifty."""
        searcher = self._searcher()
        words = set(self._analyzer.analyze(" ".join(query_words(query))))
        most = max(1, searcher.num_docs // 50)
        rare = sum(0 < searcher.doc_freq("words", word) <= most for word in words)
        return float(rare / max(1, len(words)))

    def _searcher(self) -> Any:
        """A view of the last commit that was loaded; it stays as it is while others write."""
        return self._index.searcher()

    def _is_current(self, shelf: Shelf, document_id: str) -> bool:
        import tantivy

        mine = tantivy.Query.term_query(self._schema, "document", document_id, "basic")
        first = self._searcher().search(
            mine, 1, count=False, order_by_field="chunk", order=tantivy.Order.Asc
        )
        there = shelf.chunk_ids(document_id)
        return bool(len(there)) and [int(there[0])] == [number for number, _ in first.hits]

    def _deleted_share(self) -> float:
        """Share of the documents in the index's files that are only marked as deleted."""
        held = self._searcher().terms_with_prefix("document", "")
        return 1 - len(self.document_ids()) / max(1, len(held))

    def _write(self, shelf: Shelf, *, remove: Collection[str] | None, add: Iterable[str]) -> None:
        """One commit; ``remove`` None takes everything out."""
        import tantivy

        with self._failures_in_words():
            writer = self._index.writer(_HEAP_BYTES, 1)
        try:
            if remove is None:
                writer.delete_all_documents()
            for document_id in {*(remove or ()), *add}:
                writer.delete_documents_by_term("document", document_id)
            for document_id in sorted(add):
                try:
                    numbers, texts = shelf.chunk_ids(document_id), shelf.chunk_texts(document_id)
                except DocumentNotFound:
                    continue  # deleted meanwhile by another process: gone at the next sync
                if len(numbers) != len(texts):
                    continue  # deleted between the two, likewise
                for number, (header, text) in zip(numbers, texts, strict=True):
                    row = tantivy.Document()
                    row.add_text("document", document_id)
                    row.add_unsigned("chunk", int(number))
                    row.add_text("words", " ".join(index_words(f"{header}\n{text}")))
                    with self._failures_in_words():
                        writer.add_document(row)
            with self._failures_in_words():
                writer.commit()
                writer.wait_merging_threads()
        finally:
            del writer  # gives tantivy's own lock back; what was not committed is gone
        self._index.reload()

    @contextmanager
    def _failures_in_words(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError) as failure:  # tantivy's own errors are ValueErrors
            raise RetrievalError(
                f"the word index in {self._folder} cannot be written ({failure}); make room or "
                "give write access there, or delete that folder: it is made anew from the library"
            ) from failure

    def _open(self) -> tuple[Any, Any, Any]:
        """The index in the folder, or a new one in the place of what cannot be used."""
        import tantivy

        place = self._folder / f"layout-{_LAYOUT}"
        for other in self._folder.glob("layout-*"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)
        schema = (
            tantivy.SchemaBuilder()
            .add_text_field("document", tokenizer_name="raw", index_option="basic")
            .add_unsigned_field("chunk", fast=True)
            .add_text_field("words", tokenizer_name="stems", index_option="freq")
            .build()
        )
        analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
            .filter(tantivy.Filter.stemmer("english"))
            .build()
        )
        place.mkdir(exist_ok=True)
        try:
            if changed := damaged(place):  # tantivy would find wrong words, or end the process
                raise ValueError(f"{', '.join(changed)} changed")
            index = tantivy.Index(schema, str(place))
            index.searcher()
        except Exception as damage:  # tantivy raises bare ValueErrors
            _log.warning("the word index in %s is damaged and is built anew: %s", place, damage)
            shutil.rmtree(place)
            place.mkdir()
            index = tantivy.Index(schema, str(place))
        index.register_tokenizer("stems", analyzer)
        index.config_reader("manual")
        return index, schema, analyzer
