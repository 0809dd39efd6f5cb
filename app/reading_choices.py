"""What a person may choose before asking: readers, each in a line, and first questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.sample import BOOK, QUESTIONS
from memory.store import Entry
from serving.plugins import load, names

_FIRST = "auto"


@dataclass(frozen=True, slots=True)
class ReaderChoice:
    """A reader by name, and what it does in a line."""

    name: str
    line: str


def reader_choices(usual: str) -> tuple[ReaderChoice, ...]:
    """The readers: the one that chooses by itself first, then the usual one, then the others.

    Args:
        usual: The reader of the settings, perhaps with options behind its name.
    """
    usual = usual.partition(":")[0]
    order = sorted(names("agents.readers"), key=lambda n: (n != _FIRST, n != usual, n))
    return tuple(ReaderChoice(name, _line(load("agents.readers", name))) for name in order)


def suggested_questions(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Questions to begin with: about the sample book, where it is among the documents."""
    return QUESTIONS if any(entry.name == BOOK for entry in entries) else ()


def _line(reader: type) -> str:
    return (reader.__doc__ or "").strip().partition("\n")[0]
