"""Which reader a question gets, and how much it may read.

By the question's kind, the length of the documents, the model and its pace: the idea of METIS
(arXiv:2412.10543).

The thresholds are judgements, not measurements: ``bench/router.py`` measures whether the route is
the one that a person would take, ``bench/readers.py`` what it is worth.
"""

from dataclasses import dataclass

from agents.prompting import render
from agents.question_kind import KINDS, Kind
from serving.asking import Asked, pick
from serving.model import Ability, LanguageModel

_REPLY_AND_TEMPLATE = 1_000  # tokens of a window that are not the document's
_COMFORTABLE = {"tiny": 1_000, "small": 4_000, "large": 1_000_000}
"""Tokens of text from which a model still finds what matters in one prompt."""
_GUESSED_PACE = {"tiny": 60.0, "small": 30.0, "large": 1_000.0}
_SHORT = 3
"""Budgets of text that are read whole rather than searched: what a search misses of a short text
costs more than reading it does, and the next question finds it in the prefix cache."""
_WIDE = 2
_WIDEST = 6
_OVERHEAD = 1.4  # a part costs its text, the instructions around it, and a note
_LEAST_PARTS = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """What reads.

    Attributes:
        ability: Of the model.
        window: Its context window in tokens.
        tokens_per_s: Prompt tokens that it reads a second; 0 where nobody measured.
        budget_tokens: Of document text that a prompt usually gets.
    """

    ability: Ability
    window: int
    tokens_per_s: float
    budget_tokens: int


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be read.

    Attributes:
        kind: Of the question.
        tokens: Of all documents in question.
        num_documents: How many they are.
        patience_s: How long the person will wait for the reading.
        gists_kept: Whether their gist memories have been made, so that they cost no call.
    """

    kind: Kind
    tokens: int
    num_documents: int
    patience_s: float
    gists_kept: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """A reader with its options, its token budget, and why."""

    reader: str
    budget_tokens: int
    why: str


def route(task: Task, machine: Machine) -> Route:
    """The reader that fits.

    A short document is read whole, and a longer one where the question needs all of it and the
    model reads that in good time. Else a look-up gets the usual
    budget, a question of several hops or two sides more of it (or an agent, with a model that can
    steer one), and a question about the whole document a reader that goes through it, as far as
    the patience reaches. What is too long to be read now, but was told in short before, is
    summarised from that.
    """
    room = machine.window - _REPLY_AND_TEMPLATE
    pace = machine.tokens_per_s or _GUESSED_PACE[machine.ability]
    affordable = int(pace * task.patience_s)
    needs_all = task.kind in ("summarise", "count", "list")
    at_once = min(room, affordable, _COMFORTABLE[machine.ability])
    if task.tokens <= (at_once if needs_all else min(at_once, _SHORT * machine.budget_tokens)):
        return Route("full", task.tokens, f"{_said(task)}; all {task.tokens:,} tokens fit")
    if task.kind == "look-up":
        return Route("oprag", machine.budget_tokens, f"{_said(task)}; one place will answer it")
    wide = max(machine.budget_tokens, min(_WIDE * machine.budget_tokens, room, affordable))
    if not needs_all:
        if machine.ability == "large":
            return Route("agent", wide, f"{_said(task)}; what is found tells what to look for next")
        return Route("oprag", wide, f"{_said(task)}; it needs several places")
    minutes = task.tokens * _OVERHEAD / pace / 60
    if task.tokens * _OVERHEAD <= affordable:
        reader = "margins" if task.kind == "summarise" else "notes"
        why = f"{_said(task)}; reading all of it takes about {_minutes(minutes)}"
        return Route(reader, machine.budget_tokens, why)
    too_long = f"{_said(task)}; reading all of it would take about {_minutes(minutes)}"
    if task.kind == "summarise" and task.gists_kept:
        budget = max(machine.budget_tokens, at_once)
        return Route("gist", budget, f"{too_long}, and it has been told in short before")
    if task.kind == "summarise":
        parts = max(_LEAST_PARTS, int(affordable / _OVERHEAD / machine.budget_tokens))
        why = f"{too_long}, so it reads {parts} parts here and there"
        return Route(f"margins:max_parts={parts}", machine.budget_tokens, why)
    widest = max(wide, min(_WIDEST * machine.budget_tokens, room, affordable))
    return Route("oprag", widest, f"{too_long}, so it reads what a search finds")


def kind_by_model(model: LanguageModel, question: str) -> Asked[Kind]:
    """The kind of a question by the model's log-probabilities."""
    asked = pick(model, render("question-kind", question=question), KINDS)
    if asked.value is None:
        return Asked(None, asked.usage, asked.why)
    best = max(range(len(KINDS)), key=asked.value.__getitem__)
    return Asked(KINDS[best], asked.usage)


def _said(task: Task) -> str:
    said = {
        "look-up": "it asks for a fact",
        "multi-hop": "it asks for one thing by way of another",
        "summarise": "it asks about the whole",
        "count": "it asks for a count",
        "list": "it asks for all of a kind",
        "compare": "it asks for a comparison",
    }[task.kind]
    return f"{said} in {task.num_documents:,} documents" if task.num_documents > 1 else said


def _minutes(minutes: float) -> str:
    if minutes < 1.5:
        return "a minute"
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"
