"""An agent that looks around with tools until it has seen enough, within limits."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.answering import Answering, Basis
from agents.desk import Desk
from agents.looking import Limits, Loop
from agents.passages import gather
from agents.steps import Searched, Step
from serving.plugins import make

__all__ = ["AgentReader"]

_GATHERED_BUDGETS = 3
_BEHIND = 0.5  # weight of what only the search found against what the agent looked at


@dataclass(frozen=True, slots=True)
class AgentReader:
    """Calls the tools outline, search, grep, read and gists, then answers from what it has seen.

    What the agent saw comes first into the answer's budget, the search's passages fill the rest;
    so it reads no less than plain retrieval does where the model is of no help.

    Attributes:
        loop: How it decides: a file of ``agents/loops/``.
        max_steps: Most tool calls.
        gather_tokens: Tokens of what the tools show, after which it answers; 0 takes three times
            the token budget.
        enough: Probability from which what was seen counts as enough to answer.
        top_k: How many passages the search gives besides.
    """

    loop: str = "schema"
    max_steps: int = 6
    gather_tokens: int = 0
    enough: float = 0.7
    top_k: int = 10

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Called…, Assembled, Drafting…, Verified, Answer."""
        answering = Answering("agent", time.perf_counter())
        passages = desk.search(question, self.top_k)
        yield Searched(question, tuple(passages))
        loop: Loop = make("agents.loops", self.loop)
        gathered = yield from loop.look(
            desk,
            question,
            Limits(
                self.max_steps,
                self.gather_tokens or _GATHERED_BUDGETS * desk.budget_tokens,
                self.enough,
            ),
        )
        best = max((p.score for p in passages), default=1.0) or 1.0
        behind = [replace(p, score=_BEHIND * p.score / best) for p in passages]
        if not gathered.passages and not behind:
            yield answering.not_found(desk, Basis("", (), ()), gathered.usage)
            return
        basis = yield from gather(desk, question, [*gathered.passages, *behind])
        basis = replace(basis, nearest=passages or basis.nearest)
        yield from answering.answer(desk, question, basis, gathered.usage)
