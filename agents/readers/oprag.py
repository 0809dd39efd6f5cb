"""Order-preserving retrieval (OP-RAG, arXiv:2409.01666): search, prune, read in document order."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from agents.answering import Answering, Basis
from agents.desk import Desk
from agents.steps import Assembled, Pruned, Searched, Step
from memory.document import Span
from memory.store import header
from retrieval.assemble import Order, assemble, excerpts
from retrieval.support import OFF_TOPIC, support

__all__ = ["OpragReader"]

_LEAST_TOP_K = 10
_TOKENS_PER_TOP_K = 80  # a third of a chunk


@dataclass(frozen=True, slots=True)
class OpragReader:
    """Reads the passages that a search finds, within the budget, in document order.

    Attributes:
        top_k: How many passages the search hands to the pruner; 0 takes about three times what
            fits the budget.
        order: How they stand in the prompt.
    """

    top_k: int = 0
    order: Order = "document"

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Pruned, Assembled, Drafting…, Drafted, Verified, Answer."""
        answering = Answering("oprag", time.perf_counter())
        top_k = self.top_k or max(_LEAST_TOP_K, desk.budget_tokens // _TOKENS_PER_TOP_K)
        passages = desk.search(question, top_k)
        yield Searched(question, tuple(passages))
        if not passages:
            yield answering.not_found(desk, Basis("", (), ()))
            return
        found = {p.document_id for p in passages}
        documents = {key: desk.document(key) for key in desk.documents if key in found}
        texts = [p.span.of(documents[p.document_id].text) for p in passages]
        if desk.model.ability == "tiny" and support(question, texts, desk.embedder) < OFF_TOPIC:
            # A tiny model answers whatever it is asked; a larger one is better at saying no.
            yield answering.not_found(desk, Basis("", (), passages))
            return
        kept = [[Span(0, len(text))] for text in texts]
        if desk.pruner is not None:
            headers = [header(documents[p.document_id], p.span) for p in passages]
            kept = desk.pruner.prune(question, texts, headers=headers, embedder=desk.embedder)
            sizes = [sum(map(len, spans)) for spans in kept]
            yield Pruned(sum(sizes), sum(map(len, texts)) - sum(sizes))
        context = assemble(
            excerpts(passages, kept),
            documents,
            budget_tokens=desk.budget_tokens,
            count_tokens=desk.model.count_tokens,
            order=self.order,
        )
        yield Assembled(
            context.tokens, desk.budget_tokens, len(context.pieces), len(context.left_out)
        )
        spans = [(piece.document_id, span) for piece in context.pieces for span in piece.spans]
        yield from answering.answer(desk, question, Basis(context.text, spans, passages))
