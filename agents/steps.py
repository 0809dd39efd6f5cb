"""A reader's steps, as data: what the page, the command line, the log and the tests all consume."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from agents.answer import Answer
from agents.desk import Desk
from retrieval.types import Passage
from serving.model import Usage


@dataclass(frozen=True, slots=True)
class Searched:
    """The library was searched."""

    query: str
    passages: tuple[Passage, ...]

    def __str__(self) -> str:
        return f"searched for “{self.query[:80]}”: {len(self.passages)} passages"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Sentences that do not help were dropped. Sizes are in characters."""

    kept: int
    dropped: int

    def __str__(self) -> str:
        share = self.dropped / max(self.kept + self.dropped, 1)
        return f"pruned {share:.0%} of the passages' text"


@dataclass(frozen=True, slots=True)
class Assembled:
    """Passages were put in document order under the budget."""

    tokens: int
    budget_tokens: int
    passages: int
    left_out: int

    def __str__(self) -> str:
        rest = f", {self.left_out} left out" if self.left_out else ""
        return (
            f"read {self.passages} passages in document order, "
            f"{self.tokens:,} of {self.budget_tokens:,} tokens{rest}"
        )


@dataclass(frozen=True, slots=True)
class Drafting:
    """A piece of the reply, as the model writes it."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Drafted:
    """The model's reply, before it is checked."""

    text: str
    usage: Usage

    def __str__(self) -> str:
        return f"drafted: {self.text[:200]}"


@dataclass(frozen=True, slots=True)
class Verified:
    """The reply was checked against the source."""

    citations: int
    dropped_quotes: tuple[str, ...]
    unsupported: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"checked: {self.citations} places bear it out"]
        if self.unsupported:
            parts.append(f"{len(self.unsupported)} sentences without support")
        if self.dropped_quotes:
            parts.append(f"{len(self.dropped_quotes)} quotes do not stand in the source")
        return ", ".join(parts)


Step = Searched | Pruned | Assembled | Drafting | Drafted | Verified | Answer


class Reader(Protocol):
    """Turns a question into steps, the last of which is an ``Answer``.

    Registered by file name in ``agents/readers/``; dataclass fields are options.
    """

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """The steps, as they are taken. Closing the iterator stops the work."""
        ...
