"""A library for LangChain: as a retriever, as tools, and a reader as a Runnable.

The other way round, a LangChain chat model for gistree, is ``serving/backends/langchain.py``.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Iterator, Mapping
from typing import Any

from agents.answer import Answer, Citation, cite
from agents.steps import Step
from agents.tools import TOOLS, Reach, Tool
from app.library import Library
from app.present import citation_json
from serving.errors import BadReply, MissingExtra

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import StructuredTool
except ModuleNotFoundError as error:
    raise MissingExtra("gistree for LangChain", "langchain") from error

__all__ = ["LibraryReader", "LibraryRetriever", "library_tools"]


class LibraryRetriever(BaseRetriever):
    """Finds passages of a library; each is a LangChain Document with its place as metadata.

    Attributes:
        library: Where to look. It stays the caller's to close.
        documents: Ids, names or titles of the documents to look in; all where None.
        top_k: How many passages.
    """

    library: Any
    documents: tuple[str, ...] | None = None
    top_k: int = 10

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        found = self.library.search(query, documents=self.documents, top_k=self.top_k)
        return [as_document(citation) for citation in found]


def as_document(citation: Citation) -> Any:
    """A citation as a LangChain Document.

    Its metadata has ``document`` (id), ``title``, ``start`` and ``end`` in the document's text,
    ``page``, ``label``, ``section``, ``position`` and ``score``, as docs/json.md describes them.
    """
    metadata = citation_json(citation)
    quote = metadata.pop("quote")
    key = f"{citation.document_id}:{citation.span.start}-{citation.span.end}"
    return Document(id=key, page_content=quote, metadata=metadata)


def library_tools(library: Library, documents: Collection[str] | None = None) -> list[Any]:
    """The tools outline, search, grep, read and gists as LangChain tools, for agents of any make.

    A tool's content is what a model reads; its artifact is a list of Documents, the source text
    that it showed. An argument that cannot be used becomes a message to the model.

    Args:
        library: Where to look.
        documents: Ids, names or titles of all that the tools can reach; every document where not
            given. It is settled now: what is added later is not reached.

    Raises:
        DocumentNotFound: no such document.
    """
    reach = library.reach(documents)
    return [_as_langchain(tool, reach) for tool in TOOLS]


def _as_langchain(tool: Tool, reach: Reach) -> Any:
    def run(**arguments: Any) -> tuple[str, list[Any]]:
        try:
            seen = tool.run(reach, arguments)
        except BadReply as mistake:
            return f"This call cannot be used: {mistake}", []
        shown = [cite(reach.document(p.document_id), p.span, p.score) for p in seen.passages]
        return seen.text, [as_document(citation) for citation in shown]

    return StructuredTool(
        name=tool.name,
        description=tool.does,
        args_schema=dict(tool.parameters),
        func=run,
        response_format="content_and_artifact",
    )


class LibraryReader(Runnable):
    """A reader over a library: a question in, an ``Answer`` with checked citations out.

    ``invoke`` gives the answer; ``stream`` gives the reader's steps, the last of which is it; so do
    ``ainvoke`` and ``astream`` in a thread. Only the first of each tells LangChain's callbacks.
    """

    def __init__(
        self,
        library: Library,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        """Remembers how to read; the arguments are those of ``Library.read``."""
        self._library = library
        self._options: Mapping[str, Any] = {
            "documents": documents,
            "reader": reader,
            "budget_tokens": budget_tokens,
        }

    def invoke(self, input: str, config: RunnableConfig | None = None, **_: Any) -> Answer:
        """The answer to a question.

        Raises:
            GistreeError: as ``Library.ask``.
        """
        answer: Answer = self._call_with_config(self._ask, input, config)
        return answer

    def stream(self, input: str, config: RunnableConfig | None = None, **_: Any) -> Iterator[Step]:
        """The steps towards the answer, as they are taken."""
        yield from self._steps(input)

    async def astream(
        self, input: str, config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[Step]:
        """As ``stream``; the event loop goes on while the model reads."""
        steps = self._steps(input)
        going: asyncio.Task[Step | None] | None = None
        try:
            while True:
                going = asyncio.create_task(asyncio.to_thread(next, steps, None))
                step = await asyncio.shield(going)
                if step is None:
                    return
                yield step
        finally:
            # A step that is being taken when nobody wants it any more cannot be broken off.
            if going is not None:
                await asyncio.gather(going, return_exceptions=True)
            steps.close()

    def _steps(self, question: str) -> Generator[Step, None, None]:
        yield from self._library.read(question, **self._options)

    def _ask(self, question: str) -> Answer:
        return self._library.ask(question, **self._options)
