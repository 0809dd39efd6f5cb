"""Order-preserving retrieval (OP-RAG, arXiv:2409.01666): search, prune, read in document order."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from agents.answering import Answering, Basis
from agents.desk import Desk
from agents.ensemble import Ensemble
from agents.passages import gather
from agents.steps import Searched, Step
from retrieval.assemble import Order
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
        order: How they stand in the prompt; "relevance-last" puts the best next to the question.
        evidence_first: The model copies the words that hold the answer before it answers.
        votes: How many drafts are made, 1 to 3, each from another order of the passages; the one
            most like the others is taken.
        leave_out: Each citation is left out once, and those that the answer does not hang on go;
            one more call each, and only where the model says how likely a given text is.
    """

    top_k: int = 0
    order: Order = "document"
    evidence_first: bool = False
    votes: int = 1
    leave_out: bool = False

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Pruned, Assembled, Drafting…, Drafted, Verified, Answer."""
        ensemble = Ensemble(self.evidence_first, self.votes)
        answering = Answering(
            "oprag", time.perf_counter(), ensemble=ensemble, leave_out=self.leave_out
        )
        top_k = self.top_k or max(_LEAST_TOP_K, desk.budget_tokens // _TOKENS_PER_TOP_K)
        passages = desk.search(question, top_k)
        yield Searched(question, tuple(passages))
        if not passages:
            yield answering.not_found(desk, Basis("", (), ()))
            return
        if desk.model.ability == "tiny":
            # It answers whatever it is asked; a larger model is better at saying no.
            texts = [p.span.of(desk.document(p.document_id).text) for p in passages]
            if support(question, texts, desk.embedder) < OFF_TOPIC:
                yield answering.not_found(desk, Basis("", (), passages))
                return
        basis = yield from gather(desk, question, passages, self.order, votes=self.votes)
        yield from answering.answer(desk, question, basis)
