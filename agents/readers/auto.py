"""The router: looks at the question, the documents and the model, and takes a reader that fits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agents.answer import Answer
from agents.desk import Desk
from agents.parts import document_tokens
from agents.question_kind import Kind, kind_of
from agents.routing import Machine, Route, Task, kind_by_model, route
from agents.steps import Degraded, Opening, Reader, Routed, Step
from serving.errors import ContextOverflow
from serving.model import Message, Usage
from serving.plugins import make

__all__ = ["AutoReader"]

_MOST_TOLD_IN_SHORT = 3  # documents, as many as the reader gist takes in
_MOST_MEASURED = 32  # documents; more are estimated from these


@dataclass(frozen=True, slots=True)
class AutoReader:
    """Takes the reader for a question, says why, and passes on that reader's steps.

    Attributes:
        patience_s: How long reading may take, about; what a slow model cannot read in it is
            searched instead.
        ask_model: Whether the model tells the question's kind: never, only where the rules do not
            know, or always. It costs a short prompt.
    """

    patience_s: float = 300.0
    ask_model: Literal["never", "unsure", "always"] = "never"

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Routed, then the steps of the reader that was taken."""
        kind, usage = self._kind(desk, question)
        taken = self._route(desk, kind)
        yield Routed(taken.reader, taken.budget_tokens, kind, taken.why, usage)
        try:
            for step in _read(taken.reader, desk, taken.budget_tokens, question):
                yield _with(usage, step)
        except ContextOverflow as error:
            if taken.reader != "full":
                raise
            # The length was estimated; nothing has been spent yet.
            yield Degraded("reads what a search finds", str(error))
            for step in _read("oprag", desk, desk.budget_tokens, question):
                yield _with(usage, step)

    def opening(self, desk: Desk) -> list[Message] | None:
        """Of documents that are read whole to look something up; see ``agents.steps.Opening``."""
        taken = self._route(desk, "look-up")
        reader = make("agents.readers", taken.reader)
        if not isinstance(reader, Opening):
            return None
        return reader.opening(replace(desk, budget_tokens=taken.budget_tokens))

    def _route(self, desk: Desk, kind: Kind) -> Route:
        task = Task(
            kind, _tokens(desk), len(desk.documents), self.patience_s, _gists_kept(desk, kind)
        )
        machine = Machine(
            ability=desk.model.ability,
            window=desk.model.context_window,
            tokens_per_s=desk.tokens_per_s,
            budget_tokens=desk.budget_tokens,
        )
        return route(task, machine)

    def _kind(self, desk: Desk, question: str) -> tuple[Kind, Usage]:
        kind, told_by = kind_of(question)
        if self.ask_model == "never" or (self.ask_model == "unsure" and told_by):
            return kind, Usage()
        asked = kind_by_model(desk.model, question)
        return asked.value or kind, asked.usage


def _read(spec: str, desk: Desk, budget_tokens: int, question: str) -> Iterator[Step]:
    reader: Reader = make("agents.readers", spec)
    return reader.read(replace(desk, budget_tokens=budget_tokens), question)


def _with(usage: Usage, step: Step) -> Step:
    """The step; an answer counts the tokens of telling the kind."""
    return replace(step, usage=usage + step.usage) if isinstance(step, Answer) else step


def _tokens(desk: Desk) -> int:
    """Of all documents, about; a large library is estimated from its first ones."""
    some = desk.documents[:_MOST_MEASURED]
    tokens = sum(document_tokens(desk, desk.document(key)) for key in some)
    return round(tokens * len(desk.documents) / max(len(some), 1))


def _gists_kept(desk: Desk, kind: Kind) -> bool:
    """Whether all has been told in short before; looked up only where it may matter."""
    few = len(desk.documents) <= _MOST_TOLD_IN_SHORT
    if kind != "summarise" or not few or desk.memories.options.gists == "extract":
        return False
    return all(desk.memories.num_calls(key, tree=False) == 0 for key in desk.documents)
