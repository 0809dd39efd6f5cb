"""Reading ahead what the next question's prompt begins with, while the person types."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from serving.errors import GistreeError
from serving.model import LanguageModel, Message, Usage

if TYPE_CHECKING:
    from app.library import Library

log = logging.getLogger(__name__)

_PART_TOKENS = 1_000  # read between two looks at whether somebody asks

Wanted = tuple[tuple[str, ...] | None, str, int | None]
"""Documents (all where None), reader, budget in tokens (what suits the model where None)."""


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """What reading ahead came to.

    Attributes:
        usage: Tokens spent.
        whole: Whether all is read; False where a question came first.
    """

    usage: Usage = Usage()
    whole: bool = True


def read_ahead(
    model: LanguageModel, messages: Sequence[Message], gives_way: Callable[[], bool]
) -> ReadAhead:
    """Has a prompt read in parts, each of which begins with the one before.

    Between two parts it may give way, since a model that computes one request at a time keeps a
    question waiting. A model that did not find the first part in its cache reads the rest at once.

    Args:
        model: Reads; its prefix cache keeps what it has read.
        messages: The prompt; its last message is the long one.
        gives_way: Whether to stop now.
    """
    *head, long = messages
    num_tokens = max(model.count_prompt(messages), 1)
    each = max(1, len(long.content) * _PART_TOKENS // num_tokens)
    usage = Usage()
    ends = [*range(each, len(long.content), each), len(long.content)]
    while ends:
        if gives_way():
            return ReadAhead(usage, whole=False)
        part = replace(long, content=long.content[: ends.pop(0)])
        spent = model.complete([*head, part], max_tokens=1).usage
        if usage.calls and not spent.cached_tokens:
            del ends[:-1]
        usage += spent
    return ReadAhead(usage)


@dataclass(slots=True)
class Warmer:
    """One thread for a library. Of what is wanted while it reads, the latest is read next."""

    library: "Library"
    _last: Wanted | None = None
    _next: Wanted | None = None
    _works: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, documents: tuple[str, ...] | None, reader: str, budget: int | None) -> None:
        """Has that read ahead, unless it was the last; returns at once."""
        wanted = (documents, reader, budget)
        with self._lock:
            if wanted == self._last:
                return
            self._last = self._next = wanted
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="warmer", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                wanted, self._next = self._next, None
                if wanted is None:
                    self._works = False
                    return
            if not self._read_ahead(wanted):
                with self._lock:
                    self._last = None  # the same may be tried again

    def _read_ahead(self, wanted: Wanted) -> bool:
        documents, reader, budget = wanted
        try:
            read = self.library.warm(documents=documents, reader=reader, budget_tokens=budget)
        except GistreeError as error:  # the question itself will say it to the person
            log.info("not read ahead: %s", error)
            return False
        except Exception:  # of ours, or of a library's: nobody waits for this, so the log has it
            log.exception("not read ahead")
            return False
        log.info("read ahead", extra={"tokens": read.usage.prompt_tokens, "whole": read.whole})
        return read.whole
