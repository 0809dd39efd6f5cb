"""Long work with a model: progress as values, several calls at a time, and a way to stop it."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from serving.model import Completion, LanguageModel, Message, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Making:
    """How far a memory is.

    Attributes:
        what: Which one, in words: "episodes", "gists", "memory tree".
        done: Parts that are finished, those that were there before included.
        total: All parts; of what is found on the way, such as episodes, as many as are likely.
        usage: Tokens spent on it by this run.
    """

    what: str
    done: int
    total: int
    usage: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.what}: {self.done:,} of {self.total:,}"


Made = Generator[Making, None, T]
"""Progress as it is made; its return value is the memory. Closing it stops the work: what is
finished is kept, and the next run goes on from there."""


class Stopped(Exception):
    """The work was given up. It ends a job and is never seen outside."""


Job = Callable[[Event], tuple[T, Usage]]
"""One part: is given an event that says when to stop, returns the part and its cost."""


def in_parallel(
    jobs: Sequence[Job[T]], *, num_at_once: int
) -> Generator[tuple[int, T, Usage], None, None]:
    """(position, part, cost) of each job, as they finish.

    No more than ``num_at_once`` are begun at a time, so that stopping leaves none in a queue. The
    first that fails stops the others.
    """
    stop = Event()
    waiting = iter(enumerate(jobs))
    running: dict[Future[tuple[T, Usage]], int] = {}
    with ThreadPoolExecutor(max(num_at_once, 1), thread_name_prefix="gistree-memory") as pool:
        try:
            while True:
                while len(running) < max(num_at_once, 1):
                    position, job = next(waiting, (-1, None))
                    if job is None:
                        break
                    running[pool.submit(job, stop)] = position
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(finished, key=running.__getitem__):
                    part, usage = future.result()
                    yield running.pop(future), part, usage
        finally:
            stop.set()


def say(
    model: LanguageModel, messages: Sequence[Message], *, max_tokens: int, stop: Event
) -> Completion:
    """The model's reply, given up between two pieces of it when ``stop`` is set.

    Raises:
        Stopped: it was.
    """
    with closing(model.stream(messages, max_tokens=max_tokens)) as stream:
        while True:
            if stop.is_set():
                raise Stopped
            try:
                next(stream)
            except StopIteration as end:
                completion: Completion = end.value
                return completion
