"""What a task is: the seam between the book of jobs and the work itself.

A task is a file in ``app/tasks`` whose ``__all__`` names a frozen dataclass: its fields are what a
job keeps of it, as JSON.
"""

import json
from dataclasses import asdict
from typing import Any, ClassVar, Literal, Protocol, cast

from pydantic import TypeAdapter

from app.library import Library
from app.progress import OnProgress
from serving.plugins import load

Lane = Literal["read", "fetch", "ask", "here"]
"""Jobs of one lane are done one after the other by a process of its own; "here" by the foreman."""


class Task(Protocol):
    """Some work.

    Attributes:
        lane: Where it is done.
        lasting: Whether its job stays, with its results, until the person dismisses it; ``undo``
            then removes the results too.
    """

    lane: ClassVar[Lane]
    lasting: ClassVar[bool]

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Does it, going on from where an earlier try was ended at any point.

        Args:
            library: To work on.
            on_progress: Told how far it is.
            secret: A password that the person gave, which is kept nowhere; empty for none.

        Returns:
            How it ended, in words.

        Raises:
            GistreeError: it failed, in words.
        """
        ...

    def undo(self, library: Library) -> bool:
        """Takes back what was begun; False while that cannot be done yet."""
        ...

    def clear(self, library: Library) -> None:
        """Removes what only a further try would need."""
        ...


def packed(task: Any) -> str:
    """A task's fields as a JSON object."""
    return json.dumps(asdict(task), ensure_ascii=False)


def unpacked(kind: str, work: str) -> Task:
    """The task of a job.

    Raises:
        UnknownName: there is no such kind.
    """
    return cast(Task, TypeAdapter(load("app.tasks", kind)).validate_json(work))


def lane_of(kind: str) -> Lane:
    """Where a kind of job is done."""
    return cast(Task, load("app.tasks", kind)).lane
