"""A library for LlamaIndex: as a retriever and a query engine; and its documents for a library."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from agents.answer import Citation
from app.library import Library
from app.present import answer_json, citation_json
from memory.store import Entry
from serving.errors import MissingExtra

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
except ModuleNotFoundError as error:
    raise MissingExtra("gistree for LlamaIndex", "llama-index") from error

__all__ = ["LibraryQueryEngine", "LibraryRetriever", "add_documents"]


class LibraryRetriever(BaseRetriever):
    """Finds passages of a library; each is a node with its place as metadata."""

    def __init__(
        self, library: Library, *, documents: Collection[str] | None = None, top_k: int = 10
    ) -> None:
        """Remembers where to look; the arguments are those of ``Library.search``."""
        super().__init__()
        self._library = library
        self._documents = documents
        self._top_k = top_k

    def _retrieve(self, query_bundle: Any) -> list[Any]:
        found = self._library.search(
            query_bundle.query_str, documents=self._documents, top_k=self._top_k
        )
        return [as_node(citation) for citation in found]


class LibraryQueryEngine(BaseQueryEngine):
    """Answers from a library by one of gistree's readers.

    The response's ``source_nodes`` are the citations of the answer, or, where it was not found, the
    passages nearest to the question; its ``metadata`` is the whole answer as docs/json.md
    describes it, so ``metadata["found"]`` tells the two apart.
    """

    def __init__(
        self,
        library: Library,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        """Remembers how to read; the arguments are those of ``Library.ask``."""
        super().__init__(callback_manager=None)
        self._library = library
        self._documents = documents
        self._reader = reader
        self._budget_tokens = budget_tokens

    def _query(self, query_bundle: Any) -> Any:
        answer = self._library.ask(
            query_bundle.query_str,
            documents=self._documents,
            reader=self._reader,
            budget_tokens=self._budget_tokens,
        )
        return Response(
            response=answer.text,
            source_nodes=[as_node(c) for c in answer.citations or answer.nearest],
            metadata=answer_json(query_bundle.query_str, answer),
        )

    async def _aquery(self, query_bundle: Any) -> Any:
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


def as_node(citation: Citation) -> Any:
    """A citation as a scored LlamaIndex node; its metadata as docs/json.md describes a citation."""
    metadata = citation_json(citation)
    quote = metadata.pop("quote")
    node = TextNode(
        id_=f"{citation.document_id}:{citation.span.start}-{citation.span.end}",
        text=quote,
        metadata=metadata,
        start_char_idx=citation.span.start,
        end_char_idx=citation.span.end,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=citation.document_id)},
    )
    return NodeWithScore(node=node, score=citation.score)


def add_documents(
    library: Library, documents: Iterable[Any], *, tag_fields: Sequence[str] = ()
) -> tuple[Entry, ...]:
    """Adds what a LlamaIndex loader gave.

    A loader that gives each page of a file as a document of its own (with one ``file_path``) makes
    one document with those pages here. Its title is the metadata's ``title`` where there is one.

    Args:
        library: Takes the documents.
        documents: LlamaIndex Documents, in order.
        tag_fields: Fields of the metadata that become tags, as in "author: Orlov".

    Returns:
        The library's documents, in the order in which the first of each came.

    Raises:
        DocumentError: one of them cannot be kept, for example since it has no text; those before it
            are in.
    """
    files: dict[str, list[Any]] = {}
    for document in documents:
        key = document.metadata.get("file_path") or document.id_
        files.setdefault(str(key), []).append(document)
    added = []
    for pages in files.values():
        metadata = pages[0].metadata
        name = str(metadata.get("file_name") or metadata.get("title") or pages[0].id_)
        text = "\n\f".join(page.text.replace("\f", "\n") for page in pages)
        tags = [f"{field}: {metadata[field]}" for field in tag_fields if metadata.get(field)]
        entry = library.add(text.encode("utf-8", "replace"), name=f"{name}.txt", tags=tags)
        title = metadata.get("title")
        added.append(library.rename(entry.id, str(title)) if title else entry)
    return tuple(added)
