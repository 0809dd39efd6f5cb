"""LlamaIndex's query engines over the same model and embedder, as a peer for ``readers.py``."""

import re
from typing import Any

from llama_index.core import Document, TreeIndex, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import SentenceSplitter
from pydantic import PrivateAttr

from agents.answer import Answer, cite
from agents.quotes import locate
from memory import document as memory
from retrieval.types import Embedder
from serving.model import LanguageModel, Message, Usage

_SAYS_NO = re.compile(
    r"^\W*(empty response|no (information|answer)|i (do not|don't|cannot|can't))"
    r"|\b(not|n't) (\w+ )?(provide|mention|specif|contain|state|found|available|possible|enough)",
    re.IGNORECASE,
)
"""How a reply without an answer reads: LlamaIndex marks none."""


class _Model(CustomLLM):
    """A gistree model as LlamaIndex wants one; counts what is spent."""

    _model: Any = PrivateAttr()
    _usage: Usage = PrivateAttr(default=Usage())

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self._model = model

    def spent(self) -> Usage:
        """Tokens since the last look."""
        usage, self._usage = self._usage, Usage()
        return usage

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self._model.context_window, num_output=96, model_name=self._model.name
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        completion = self._model.complete([Message("user", prompt)], max_tokens=96)
        self._usage += completion.usage
        return CompletionResponse(text=completion.text)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError("the benchmark asks for whole replies")


class _Embedder(BaseEmbedding):
    """A gistree embedder as LlamaIndex wants one."""

    _embedder: Any = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._embedder = embedder

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embedder.embed_query(query).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embedder.embed([text])[0].tolist()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.embed(texts).tolist()


class LlamaIndexPeer:
    """Query engines of one document each, made once; what making one spent goes to its question."""

    def __init__(self, model: LanguageModel, embedder: Embedder) -> None:
        self._model, self._embedder = _Model(model), _Embedder(embedder)
        self._engines: dict[tuple[str, str], Any] = {}

    def answer(self, kind: str, question: str, document: memory.Document) -> Answer:
        """The engine's reply; its source nodes are taken for citations.

        Chunks of 256 tokens, so that two of them are about as much as gistree's budget for a small
        model; with the library's default of 1,024 they would be three times as much.
        """
        key = (kind, document.id)
        if key not in self._engines:
            splitter = SentenceSplitter(chunk_size=256, chunk_overlap=20)
            source = [Document(text=document.text)]
            if kind == "llamaindex-tree":
                index: Any = TreeIndex.from_documents(
                    source, llm=self._model, transformations=[splitter]
                )
            else:
                index = VectorStoreIndex.from_documents(
                    source, embed_model=self._embedder, transformations=[splitter]
                )
            self._engines[key] = index.as_query_engine(llm=self._model)
        response = self._engines[key].query(question)
        places = [locate(node.node.get_content(), document.text) for node in response.source_nodes]
        text = str(response).strip()
        return Answer(
            text=text,
            citations=tuple(cite(document, place, 1.0) for place in places if place),
            found=bool(text) and not _SAYS_NO.search(text),
            usage=self._model.spent(),
            reader=kind,
        )
