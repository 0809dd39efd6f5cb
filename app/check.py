"""Looking a whole library over, and putting right what is derived."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from app.ingest import Ingest
from app.progress import silent
from app.shelf_files import Files, digest
from memory.store import Entry, Store
from memory.verify import (
    Flaw,
    database_flaws,
    document_flaws,
    drop_vectors,
    text_flaws,
    vector_flaws,
)
from retrieval.searcher import Searcher
from retrieval.types import Embedder


@dataclass(frozen=True, slots=True)
class Check:
    """Compares files, texts, spans, vectors and indexes with each other.

    Attributes:
        store: The library's database.
        files: Its copies of the files.
        ingest: Makes vectors again.
        embedder: The embedder in use.
        searcher: Gives the indexes; called once nothing else is left to look at.
        rebuild: Makes them anew and gives them.
    """

    store: Store
    files: Files
    ingest: Ingest
    embedder: Embedder
    searcher: Callable[[], Searcher]
    rebuild: Callable[[], Searcher]

    def run(self, *, repair: bool) -> Iterator[Flaw]:
        """Every flaw, as it is found.

        Args:
            repair: Make vectors and indexes again where they are wrong, and remove files that
                belong to no document.
        """
        yield from database_flaws(self.store)
        entries, sound = self.store.entries(), True
        for entry in entries:
            yield from self._file(entry)
            document = self.store.document(entry.id)
            yield from text_flaws(self.store, document)
            yield from document_flaws(document, self.store.chunks(entry.id))
            for flaw in vector_flaws(self.store, entry.id, self.embedder.name):
                if repair:
                    drop_vectors(self.store, entry.id, self.embedder.name)
                    self.ingest.embed(entry, on_progress=silent)
                sound = sound and repair
                yield replace(flaw, repaired=repair)
        yield from self._orphans(repair)
        if sound:  # an index cannot be compared with vectors that cannot be read
            yield from self._indexes(entries, repair)

    def _file(self, entry: Entry) -> Iterator[Flaw]:
        path = self.files.path(entry.file)
        if not path.is_file():
            yield Flaw("file", "its file is gone; its text is whole. Add it again", entry.id)
        elif digest(path) != entry.id:
            what = "its file has changed since it was added; its text is as it was. Add it again"
            yield Flaw("file", what, entry.id)

    def _orphans(self, repair: bool) -> Iterator[Flaw]:
        """Files of no document. Those of documents that are being read belong to them."""
        look = self.files.sweep if repair else self.files.orphans
        for path in look(lambda: [entry.file for entry in self.store.entries(state=None)]):
            what = f"{path.name} in {path.parent} belongs to no document"
            yield Flaw("orphan", what, repaired=repair)

    def _indexes(self, entries: list[Entry], repair: bool) -> Iterator[Flaw]:
        """Whether the indexes hold each document as the database does."""
        searcher = self.searcher()
        searcher.sync(verify=True)  # what has changed meanwhile is no flaw: an index follows
        lost = [entry for entry in entries if not searcher.holds(entry.id)]
        if lost and repair:
            searcher = self.rebuild()
        for entry in lost:
            found = repair and searcher.holds(entry.id)
            yield Flaw("index", "the index does not hold it as the database does", entry.id, found)
