"""Memories as readers want them: made step by step, and without a model where it fails."""

from collections.abc import Generator, Sequence
from typing import TypeVar

from agents.desk import Desk
from agents.steps import Building, Degraded, Searched, Step
from memory.gists import GistMemory
from memory.making import Making
from memory.tree import MemoryTree
from retrieval.types import Passage
from serving.errors import ModelUnavailable
from serving.model import Usage

T = TypeVar("T")


def gists_of(
    desk: Desk, document_id: str, most_calls: int
) -> Generator[Step, None, tuple[GistMemory, Usage]]:
    """Building…; returns the gist memory and what was spent on it now.

    Args:
        desk: What lies before the reader.
        document_id: Of the document.
        most_calls: Where making it takes more, the document's own sentences stand in for gists.
    """
    memory, usage = None, Usage()
    if (yield from _affordable(desk, document_id, most_calls, tree=False)):
        memory, usage = yield from _built(desk, document_id, desk.memories.gists(document_id))
    return memory or desk.memories.gists_without_model(document_id), usage


def tree_of(
    desk: Desk, document_id: str, most_calls: int
) -> Generator[Step, None, tuple[MemoryTree, Usage]]:
    """Building…; returns the memory tree and what was spent on it now; as ``gists_of``."""
    memory, usage = None, Usage()
    if (yield from _affordable(desk, document_id, most_calls, tree=True)):
        memory, usage = yield from _built(desk, document_id, desk.memories.tree(document_id))
    return memory or desk.memories.tree_without_model(document_id), usage


def _affordable(
    desk: Desk, document_id: str, most_calls: int, *, tree: bool
) -> Generator[Step, None, bool]:
    calls = desk.memories.num_calls(document_id, tree=tree)
    if calls <= most_calls:
        return True
    title = desk.document(document_id).title
    yield Degraded(
        f"takes sentences of “{title}” for its gists",
        f"the model would be called {calls:,} times; make them once: gistree memory",
    )
    return False


def found(
    desk: Desk, question: str, *, top_k: int, most: int
) -> Generator[Step, None, tuple[Sequence[Passage], list[str]]]:
    """Searched (and Degraded); returns what was found, and whose memory is worth making.

    Args:
        desk: What lies before the reader.
        question: As it was asked.
        top_k: How many passages the search gives.
        most: Of how many documents memories are made, at most.
    """
    passages = desk.search(question, top_k)
    yield Searched(question, tuple(passages))
    if len(desk.documents) <= most:
        return passages, list(desk.documents)
    best = list(dict.fromkeys(passage.document_id for passage in passages))[:most]
    left = len(desk.documents) - len(best)
    yield Degraded(f"leaves {left} documents out", "the search names others first")
    return passages, [key for key in desk.documents if key in best]


def _built(
    desk: Desk, document_id: str, making: Generator[Making, None, T]
) -> Generator[Step, None, tuple[T | None, Usage]]:
    title = desk.document(document_id).title
    spent, ended = Usage(), Usage()
    what = ""
    try:
        while True:
            try:
                step = next(making)
            except StopIteration as end:
                made: T = end.value
                return made, ended + spent
            if step.what != what:  # each memory counts its own calls
                ended, what = ended + spent, step.what
            spent = step.usage
            yield Building(document_id, title, step.what, step.done, step.total, ended + spent)
    except ModelUnavailable as error:
        yield Degraded(f"goes on without the model's {what or 'memory'} of “{title}”", str(error))
        return None, ended + spent
    finally:
        making.close()
