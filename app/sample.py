"""The sample book, which ships with gistree, and three questions about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

BOOK = "persuasion.txt"
TITLE = "Persuasion"
AUTHOR = "Jane Austen"
QUESTIONS = (
    "What is the only book that Sir Walter Elliot reads for his own amusement?",
    "Which frigate did Captain Wentworth command?",
    "How large is Mr Darcy's income?",
)
"""The book does not answer the last one."""


@contextmanager
def sample_book() -> Iterator[Path]:
    """Its file, for as long as the block lasts."""
    with as_file(files("app") / "samples" / BOOK) as path:
        yield path
