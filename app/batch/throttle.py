"""How many rows are asked at a time, found by measuring."""

import threading
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Throttle:
    """A limit that doubles while that makes rows come faster, and goes back where it does not.

    A model in this process computes one request at a time, so its limit stays at one or two; a
    server batches, and its limit grows until it is full.

    Attributes:
        most: The limit never grows past it.
        window: Rows that are finished before the limit is judged, at least; twice the limit where
            that is more.
        gain: How much faster rows must come for a higher limit to stay.
    """

    most: int = 64
    window: int = 6
    gain: float = 1.15
    limit: int = 1
    _settled: bool = False
    _best: float = 0.0
    _finished: int = 0
    _since: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def finished(self, now: float | None = None) -> None:
        """One more row is done.

        Args:
            now: ``time.monotonic()``; given by tests.
        """
        if self._settled:
            return
        now = time.monotonic() if now is None else now
        with self._lock:
            self._finished += 1
            if self._finished < max(self.window, 2 * self.limit):
                return
            rate = self._finished / max(now - self._since, 1e-9)
            if rate < self.gain * self._best:
                self.limit = max(self.limit // 2, 1)
                self._settled = True
            elif self.limit * 2 > self.most:
                self._settled = True
            else:
                self._best = rate
                self.limit *= 2
            self._finished, self._since = 0, now
