"""How a batch comes on, in words: rate, time left, tokens and how many of them were cached."""

import time
from collections.abc import Callable

from serving.model import Usage


class Course:
    """Counts the rows of one run."""

    def __init__(self, left: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begins to count.

        Args:
            left: Rows that are to be asked.
            clock: Seconds, from any beginning.
        """
        self.usage = Usage()
        self.rows = 0
        self._left = left
        self._clock = clock
        self._begun = self._said = clock()

    def took(self, usage: Usage) -> None:
        """One more row is done."""
        self.rows += 1
        self.usage += usage

    def is_due(self, every_s: float) -> bool:
        """Whether it is so long since this last said so."""
        now = self._clock()
        if now - self._said < every_s:
            return False
        self._said = now
        return True

    @property
    def hits(self) -> float:
        """Share of the prompts' tokens that came from a cache."""
        return self.usage.cached_share

    def __str__(self) -> str:
        if not self.rows:
            return "no row finished yet"
        a_row = (self._clock() - self._begun) / self.rows
        rate = f"{60 / a_row:,.1f} rows a minute, " if a_row else ""
        left = _duration(a_row * (self._left - self.rows))
        tokens = f"{self.usage.prompt_tokens:,} tokens, {self.hits:.0%} of them cached"
        return f"{rate}{left} left, {tokens}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:,.1f} h"
