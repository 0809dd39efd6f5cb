"""Passages to the basis of an answer: what helps of them, in one order, under the budget."""

from collections.abc import Generator, Sequence

from agents.answering import Basis
from agents.desk import Desk
from agents.steps import Assembled, Pruned, Step
from memory.document import Span
from memory.store import header
from retrieval.assemble import Order, assemble, excerpts
from retrieval.types import Passage

_ORDERS: tuple[Order, ...] = ("document", "relevance", "relevance-last")


def gather(
    desk: Desk,
    question: str,
    passages: Sequence[Passage],
    order: Order = "document",
    *,
    votes: int = 1,
) -> Generator[Step, None, Basis]:
    """Pruned (where the desk has a pruner) and Assembled; returns the basis of the answer.

    Args:
        desk: What lies before the reader.
        question: As it was asked.
        passages: Of the desk's documents, in any order; they may overlap.
        order: How they stand in the prompt.
        votes: In how many orders the basis has them, at most three.

    Raises:
        BudgetTooSmall: not even one sentence fits the desk's budget.
    """
    found = {p.document_id for p in passages}
    documents = {key: desk.document(key) for key in desk.documents if key in found}
    texts = [p.span.of(documents[p.document_id].text) for p in passages]
    kept = [[Span(0, len(text))] for text in texts]
    if desk.pruner is not None:
        headers = [header(documents[p.document_id], p.span) for p in passages]
        kept = desk.pruner.prune(question, texts, headers=headers, embedder=desk.embedder)
        sizes = [sum(map(len, spans)) for spans in kept]
        yield Pruned(sum(sizes), sum(map(len, texts)) - sum(sizes))
    offered = excerpts(passages, kept)
    contexts = [
        assemble(
            offered,
            documents,
            budget_tokens=desk.budget_tokens,
            count_tokens=desk.model.count_tokens,
            order=each,
        )
        for each in sorted(_ORDERS, key=lambda each: each != order)[: max(votes, 1)]
    ]
    context, *others = contexts
    used = {piece.document_id for piece in context.pieces}
    titles = tuple(d.title for d in documents.values() if d.id in used)
    yield Assembled(
        context.tokens,
        desk.budget_tokens,
        len(context.pieces),
        len(context.left_out),
        titles if len(desk.documents) > 1 else (),
    )
    spans = [(piece.document_id, span) for piece in context.pieces for span in piece.spans]
    return Basis(context.text, spans, passages, [other.text for other in others])
