"""Questions that are asked of each document by itself, to make a table of the answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from app.batch.questions import Row
from memory.errors import DocumentNotFound


def each_document(
    rows: Iterable[Row], documents: Sequence[str], resolve: Callable[[str], str]
) -> Iterator[Row]:
    """Every question once for every document; a row's id is the question's and the document's.

    Args:
        rows: The questions as the file has them.
        documents: Ids of the documents that rows without documents of their own are asked of.
        resolve: Name of a document to its id; raises DocumentNotFound.
    """

    def known(name: str) -> str:
        try:
            return resolve(name)
        except DocumentNotFound:
            return name  # the row will say so: it does not stop the others

    number = 0
    for row in rows:
        for key in map(known, row.documents) if row.documents else documents:
            yield replace(row, number=number, id=f"{row.id}/{key[:12]}", documents=(key,))
            number += 1
