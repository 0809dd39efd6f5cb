"""What lies before a reader: the documents in question, a way to search them, a model, a budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.document import Document
from memory.gists import GistMemory
from memory.memories import Memories
from retrieval.types import Embedder, Passage, Pruner
from serving.model import LanguageModel

Search = Callable[[str, int], Sequence[Passage]]


@dataclass(frozen=True, slots=True)
class Scope:
    """What tools may reach where no model is at hand; as the same fields of ``Desk``."""

    documents: tuple[str, ...]
    search: Search
    document: Callable[[str], Document]
    gists: Callable[[str], GistMemory]


@dataclass(frozen=True, slots=True)
class Desk:
    """A reader's tools. The scope is enforced here: nothing outside ``documents`` can be reached.

    Attributes:
        documents: Ids of the documents that the question is about, in a stable order.
        search: (query, top_k) to passages of those documents, the best first.
        document: Id to document, for those ids only.
        model: The language model.
        embedder: The library's embedder.
        pruner: Drops sentences that do not help, or None for no pruning.
        budget_tokens: Most tokens of document text in one prompt.
        memories: Makes the documents' gist memories and memory trees, for those ids only.
        tokens_per_s: Prompt tokens that the model reads a second here; 0 where nobody measured.
    """

    documents: tuple[str, ...]
    search: Search
    document: Callable[[str], Document]
    model: LanguageModel
    embedder: Embedder
    pruner: Pruner | None
    budget_tokens: int
    memories: Memories
    tokens_per_s: float = 0.0

    @property
    def gists(self) -> Callable[[str], GistMemory]:
        """Id to what is there of a document's gist memory; see ``Memories.at_hand``."""
        return self.memories.at_hand
