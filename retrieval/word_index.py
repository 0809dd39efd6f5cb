"""Word search (BM25) over the shelf's passages: a tantivy index in a folder.

Measured against SQLite FTS5 and bm25s with ``bench/words.py``. The index is derived: it is synced
with the shelf by document, and one that is missing, damaged or of another layout is built anew.
"""

import logging
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from retrieval.words import index_words, query_words

_log = logging.getLogger(__name__)
_LAYOUT = "1"  # of the schema and the way texts become words; another one is not read
_HEAP_BYTES = 50_000_000
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

    def update(
        self, *, remove: Collection[str], add: Iterable[tuple[str, Iterable[tuple[int, str]]]]
    ) -> None:
        """Takes documents out and puts documents in, all of it at once for every reader.

        Args:
            remove: Document ids; unknown ones do nothing.
            add: Pairs of document id and its passages, each a chunk number and text. Whatever the
                index held of such a document is replaced.
        """
        import tantivy

        with self._lock:
            writer = self._index.writer(_HEAP_BYTES, 1)
            try:
                for document_id in remove:
                    writer.delete_documents_by_term("document", document_id)
                for document_id, passages in add:
                    writer.delete_documents_by_term("document", document_id)
                    for chunk_id, text in passages:
                        row = tantivy.Document()
                        row.add_text("document", document_id)
                        row.add_unsigned("chunk", chunk_id)
                        row.add_text("words", " ".join(index_words(text)))
                        writer.add_document(row)
                writer.commit()
                writer.wait_merging_threads()
            finally:
                del writer  # gives tantivy's own lock back; what was not committed is gone
        self._index.reload()

    def document_ids(self) -> set[str]:
        """Documents with passages in the index, as last committed by any process."""
        import tantivy

        self._index.reload()
        every = tantivy.Query.all_query()  # without it deleted documents are counted too
        found = self._index.searcher().terms_with_prefix("document", "", every)
        return {document_id for document_id, _ in found}

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
        searcher = self._index.searcher()
        hits = searcher.search(wanted, top_k, count=False).hits
        numbers = searcher.fast_field_values("chunk", [address for _, address in hits])
        return [(number, score) for number, (score, _) in zip(numbers, hits, strict=True)]

    def rarity(self, words: Iterable[str]) -> list[float]:
        """Share of all passages that do *not* hold each word, 0 to 1; 1 for unknown words."""
        searcher = self._index.searcher()
        stems = [stem for word in words for stem in self._analyzer.analyze(word)]
        total = max(1, searcher.num_docs)
        return [max(0.0, 1 - searcher.doc_freq("words", stem) / total) for stem in stems]

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
            index = tantivy.Index(schema, str(place))
            index.searcher()
        except Exception as damage:  # tantivy raises bare ValueErrors and panics
            _log.warning("the word index in %s is damaged and is built anew: %s", place, damage)
            shutil.rmtree(place)
            place.mkdir()
            index = tantivy.Index(schema, str(place))
        index.register_tokenizer("stems", analyzer)
        index.config_reader("manual")
        return index, schema, analyzer
