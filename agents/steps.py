"""A reader's steps, as data: what the page, the command line, the log and the tests all consume."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from agents.answer import Answer, Place
from agents.desk import Desk
from retrieval.types import Passage
from serving.model import Message, Usage


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
    """Passages were put in document order under the budget.

    Attributes:
        tokens: Of the text that the model is given.
        budget_tokens: Most that it may have.
        passages: How many stretches it has.
        left_out: How many did not fit.
        titles: Of the documents that they come from, where the question was put to several.
    """

    tokens: int
    budget_tokens: int
    passages: int
    left_out: int
    titles: tuple[str, ...] = ()

    def __str__(self) -> str:
        rest = f", {self.left_out} left out" if self.left_out else ""
        titles = ", ".join(f"“{title}”" for title in self.titles[:5])
        more = f" and {len(self.titles) - 5} more" if len(self.titles) > 5 else ""
        source = f" from {titles}{more}" if titles else ""
        return (
            f"read {self.passages} passages in document order{source}, "
            f"{self.tokens:,} of {self.budget_tokens:,} tokens{rest}"
        )


@dataclass(frozen=True, slots=True)
class Drafting:
    """A piece of the reply, as the model writes it."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Voted:
    """Several drafts were made; the one most like the others is taken."""

    drafts: tuple[str, ...]
    chosen: int

    def __str__(self) -> str:
        return f"took draft {self.chosen + 1} of {len(self.drafts)}, the most like the others"


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


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The model was asked whether the answer is stated in what it read.

    Attributes:
        stands: Whether the answer is shown; else it is "not found".
        sureness: Log-odds of "yes" and the support of the best citation, in one number.
        least: What it takes.
        usage: Tokens spent on it.
    """

    stands: bool
    sureness: float
    least: float
    usage: Usage = Usage()

    def __str__(self) -> str:
        verdict = "stands" if self.stands else "is held back: what was read does not state it"
        return f"asked again, the answer {verdict} (sureness {self.sureness:.1f} of {self.least})"


@dataclass(frozen=True, slots=True)
class Weighed:
    """Each citation was left out, to see what the answer hangs on.

    Attributes:
        falls: As ``agents.attribution.Falls`` has them, in the order of the citations before.
        kept: Citations that are left.
    """

    falls: tuple[float | None, ...]
    kept: int

    def __str__(self) -> str:
        return f"weighed {len(self.falls)} citations by leaving each out: {self.kept} are kept"


@dataclass(frozen=True, slots=True)
class Routed:
    """The router chose how the question is read."""

    reader: str
    budget_tokens: int
    kind: str
    why: str
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"reads with {self.reader} within {self.budget_tokens:,} tokens: {self.why}"


@dataclass(frozen=True, slots=True)
class Building:
    """A memory of a document is being made; each finished part is kept.

    Attributes:
        document_id: Whose memory.
        title: Of that document.
        what: Which memory, in words: "gists", "memory tree" …
        done: Parts that are finished, those found in the library included.
        total: All parts.
        usage: Tokens spent on it so far by this question.
    """

    document_id: str
    title: str
    what: str
    done: int
    total: int
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"making {self.what} of “{self.title}”: {self.done} of {self.total}"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Parts of the source were opened, in document order."""

    places: tuple[Place, ...]
    why: str = ""
    usage: Usage = Usage()

    def __str__(self) -> str:
        reason = f": {self.why}" if self.why else ""
        return f"looked up {'; '.join(str(place) for place in self.places) or 'nothing'}{reason}"


@dataclass(frozen=True, slots=True)
class Walked:
    """A step through a memory tree.

    Attributes:
        place: What the node spans.
        node: Its number in the tree.
        level: 0 for leaves.
        action: "down" into a node, "up" back to its parent, "read" of a leaf's text, "stop".
        why: The model's reason, in its words.
    """

    place: Place
    node: int
    level: int
    action: Literal["down", "up", "read", "stop"]
    why: str = ""
    usage: Usage = Usage()

    def __str__(self) -> str:
        verb = {"down": "walked to", "up": "turned back to", "read": "read", "stop": "stopped at"}
        reason = f": {self.why}" if self.why else ""
        return f"{verb[self.action]} {self.place}{reason}"


@dataclass(frozen=True, slots=True)
class Noted:
    """A stretch of the source was read and a note was made of it."""

    place: Place
    note: str
    relevant: bool
    done: int
    total: int
    usage: Usage = Usage()

    def __str__(self) -> str:
        what = self.note[:200] if self.relevant else "nothing to the question"
        return f"read part {self.done} of {self.total} ({self.place}): {what}"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool was used. ``result`` is what the model saw of it, shortened."""

    tool: str
    arguments: str
    result: str
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.tool}({self.arguments}): {self.result[:200]}"


@dataclass(frozen=True, slots=True)
class Degraded:
    """The model's reply could not be used, twice; the program's own choice stands in for it."""

    what: str
    why: str
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.what}, since {self.why}"


Step = (
    Searched
    | Pruned
    | Assembled
    | Routed
    | Building
    | LookedUp
    | Walked
    | Noted
    | Called
    | Degraded
    | Drafting
    | Voted
    | Weighed
    | Drafted
    | Verified
    | Confirmed
    | Answer
)


class Reader(Protocol):
    """Turns a question into steps, the last of which is an ``Answer``.

    Registered by file name in ``agents/readers/``; dataclass fields are options.
    """

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """The steps, as they are taken. Closing the iterator stops the work."""
        ...


@runtime_checkable
class Opening(Protocol):
    """A reader whose prompts about the same documents begin alike, whatever the question."""

    def opening(self, desk: Desk) -> list[Message] | None:
        """A prompt with that beginning, to be read ahead; None where there is none.

        Raises:
            ContextOverflow: the documents do not fit the model's window.
        """
        ...
