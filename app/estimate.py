"""How long a stage of some work will still take, from how it went so far."""

import time
from collections.abc import Callable

from app.progress import Progress

_LEAST_S = 2.0


class Estimate:
    """Watches the progress of one job."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = ""
        self._since = 0.0
        self._first = 0

    def seconds_left(self, progress: Progress) -> float | None:
        """Seconds that this stage still takes, about; None where nobody can tell yet."""
        now = self._clock()
        if progress.stage != self._stage:
            self._stage, self._since, self._first = progress.stage, now, progress.done
        done, took = progress.done - self._first, now - self._since
        if not progress.total or done <= 0 or took < _LEAST_S:
            return None
        return max(0, progress.total - progress.done) * took / done
