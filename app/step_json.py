"""A reader's steps as JSON objects, and which documents' text they may hold."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agents.answer import Answer
from agents.steps import Step


def step_json(step: Step) -> dict[str, Any]:
    """A step: its kind under "step", what it says to a person under "says", and its fields."""
    return {"step": type(step).__name__, "says": str(step)} | {
        each.name: _plain(getattr(step, each.name)) for each in fields(step)
    }


def seen_documents(steps: Iterable[Mapping[str, Any]], scope: Collection[str]) -> set[str]:
    """Ids of the documents whose text the steps, or an answer made by them, may hold.

    Args:
        steps: As ``step_json`` made them.
        scope: Ids of the documents that were asked.

    Returns:
        Those that the steps name; all of the scope where a step does not say what it has seen.
    """
    steps = list(steps)
    named = set().union(*(_named(step) for step in steps)) if steps else set()
    is_told = any(step["step"] == "Searched" for step in steps) or not steps
    if not is_told or any(step["step"] == "Called" for step in steps):
        return set(scope)
    return named & set(scope)


def answer_documents(answer: Answer) -> set[str]:
    """Ids of the documents that an answer quotes."""
    return {c.document_id for c in (*answer.citations, *answer.nearest)}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _named(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        own = {str(value["document_id"])} if "document_id" in value else set()
        return own.union(*map(_named, value.values()))
    return set().union(*map(_named, value)) if isinstance(value, list) else set()
