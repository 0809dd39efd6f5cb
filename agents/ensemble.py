"""Other ways to a draft than one plain reply: evidence before the answer, and a vote of several."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.desk import Desk
from agents.prompting import fenced, render
from agents.quotes import locate
from agents.steps import Degraded, Drafting, Step, Voted
from retrieval.types import Embedder
from retrieval.words import index_words
from serving.asking import ask, field
from serving.errors import BadReply
from serving.model import Completion, Usage

if TYPE_CHECKING:
    from agents.answering import Basis

Draft = Callable[[Desk, str, "Basis"], Generator[Step, None, Completion]]

_EVIDENCE_TOKENS = 160
_LEAST_EVIDENCE_CHARS = 8
_REPLY = {
    "type": "object",
    "properties": {"evidence": {"type": "string"}, "answer": {"type": "string"}},
    "required": ["evidence", "answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Switches of the answer step.

    Attributes:
        evidence_first: The model copies the words that hold the answer, then answers (E2G,
            arXiv:2401.05787); words that do not stand in the passages are handed back once.
        votes: How many drafts are made, each with the passages in another order; the one most
            like the others is taken (its medoid). As many as the basis has orders, at most.
    """

    evidence_first: bool = False
    votes: int = 1

    def draft(
        self, desk: Desk, question: str, basis: "Basis", plain: Draft
    ) -> Generator[Step, None, Completion]:
        """A draft, with the tokens of all that went into it.

        Args:
            desk: What lies before the reader.
            question: As it was asked.
            basis: What the answer is made from.
            plain: Makes one plain draft.
        """
        one: Draft = plain
        if self.evidence_first:

            def one(desk: Desk, question: str, basis: "Basis") -> Generator[Step, None, Completion]:
                return _evidence_first(desk, question, basis, plain)

        texts = (basis.text, *basis.other_orders)[: max(self.votes, 1)]
        if len(texts) == 1:
            return (yield from one(desk, question, basis))
        drafts: list[Completion] = []
        for text in texts:
            drafts.append((yield from _silently(one(desk, question, replace(basis, text=text)))))
        chosen = medoid([draft.text for draft in drafts], desk.embedder)
        yield Voted(tuple(draft.text for draft in drafts), chosen)
        usage = sum((draft.usage for draft in drafts), Usage())
        return replace(drafts[chosen], usage=usage)


def medoid(drafts: Sequence[str], embedder: Embedder) -> int:
    """Position of the draft most like the others, in words and in meaning; the first of equals."""
    vectors = embedder.embed(drafts)
    likeness = vectors @ vectors.T
    words = [set(index_words(draft)) for draft in drafts]
    for i, one in enumerate(words):
        for j, other in enumerate(words):
            likeness[i, j] += 2 * len(one & other) / max(len(one) + len(other), 1)
    return int(np.argmax(likeness.sum(axis=1).round(6)))


def _evidence_first(
    desk: Desk, question: str, basis: "Basis", plain: Draft
) -> Generator[Step, None, Completion]:
    texts = [span.of(desk.document(key).text) for key, span in basis.spans]

    def read(reply: Any) -> str:
        evidence = field(reply, "evidence", str).strip()
        answer = field(reply, "answer", str).strip()
        stands = any(locate(evidence, text) for text in texts)
        if len(evidence) >= _LEAST_EVIDENCE_CHARS and not stands:
            raise BadReply(f"{evidence[:80]!r} does not stand in the passages; copy exactly")
        if not answer:
            raise BadReply("the answer is empty")
        return answer

    asked = ask(
        desk.model,
        render("answer-evidence", passages=fenced(basis.text), question=question),
        schema=_REPLY,
        read=read,
        max_tokens=_EVIDENCE_TOKENS,
    )
    if asked.value is not None:
        yield Drafting(asked.value)
        return Completion(asked.value, asked.usage)
    yield Degraded("answers without evidence first", asked.why)
    completion = yield from plain(desk, question, basis)
    return replace(completion, usage=asked.usage + completion.usage)


def _silently(draft: Generator[Step, None, Completion]) -> Generator[Step, None, Completion]:
    """A draft whose words are not shown as they come: it may not be the one that is taken."""
    while True:
        try:
            step = next(draft)
        except StopIteration as end:
            completion: Completion = end.value
            return completion
        if not isinstance(step, Drafting):
            yield step
