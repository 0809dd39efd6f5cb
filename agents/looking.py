"""The seam between an agent reader and the loop that decides what it looks at."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from agents.desk import Desk
from agents.steps import Step
from retrieval.types import Passage
from serving.model import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """What a loop may spend.

    Attributes:
        max_steps: Most tool calls.
        gather_tokens: Tokens of what the tools show, after which it stops.
        enough: Probability from which what was seen counts as enough to answer.
    """

    max_steps: int
    gather_tokens: int
    enough: float


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a loop has seen.

    Attributes:
        passages: Source text that the tools have shown; scores of 0.9 and more, higher is better.
        usage: Tokens of all its calls.
    """

    passages: tuple[Passage, ...]
    usage: Usage


class Loop(Protocol):
    """Calls tools (``agents.tools``) until it has seen enough, or a limit is reached.

    Registered by file name in ``agents/loops/``.
    """

    def look(self, desk: Desk, question: str, limits: Limits) -> Generator[Step, None, Gathered]:
        """Called and Degraded steps; returns what was seen. Never raises for a model's mistake."""
        ...
