"""How many rows are asked at a time, found by measuring."""

import threading
import time
from dataclasses import dataclass, field

from serving.model import LanguageModel, num_at_once

_MOST_OF_A_SERVER = 64
_FIRST_OF_A_SERVER = 4
_LOW_WINDOWS = 2  # rows that end together make one window slow by chance
_ONE_AHEAD = 1  # a row is searched and checked while the model is at another one


@dataclass(slots=True)
class Throttle:
    """A limit that grows while work is done faster for it, and goes back where it is not.

    It doubles at first. Once a higher limit did not pay it goes back, and from then on tries one
    more row now and again: a server may have become free, or rows longer. It is halved where the
    server says that it is overloaded, and cut by a quarter where the rate falls.

    Attributes:
        limit: Rows at a time, now.
        most: The limit never grows past it.
        window: Rows that are finished before the limit is judged, at least; twice the limit where
            that is more.
        gain: How much faster work must be done for a doubled limit to stay; one row more must gain
            its share of that.
        loss: What part of the best rate is a fall; the first rows about documents, whose beginnings
            are in no cache yet, alone make a window slower. 0 sees none.
        patience: Windows without a change before one more row is tried.
    """

    limit: int = 1
    most: int = _MOST_OF_A_SERVER
    window: int = 6
    gain: float = 1.15
    loss: float = 0.5
    patience: int = 4
    _doubling: bool = True
    _before: int = 0  # the limit that one being tried goes back to; 0 while none is tried
    _best: float = 0.0
    _quiet: int = 0
    _low: int = 0
    _finished: int = 0
    _work: float = 0.0
    _since: float = field(default_factory=time.monotonic)
    _cut: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def finished(self, work: float = 1.0, *, now: float | None = None) -> None:
        """One more row is done.

        Args:
            work: How much it was, in tokens.
            now: ``time.monotonic()``; given by tests.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            self._cut = False
            self._finished += 1
            self._work += work
            if self._finished < max(self.window, 2 * self.limit):
                return
            self._judge(self._work / max(now - self._since, 1e-9))
            self._begin(now)

    def overloaded(self, *, now: float | None = None) -> None:
        """The server is too busy. Until a row is done, hearing it again changes nothing more."""
        now = time.monotonic() if now is None else now
        with self._lock:
            if self._cut:
                return
            self._cut, self._doubling, self._before = True, False, 0
            self.limit = max(self.limit // 2, 1)
            self._best, self._quiet, self._low = 0.0, 0, 0
            self._begin(now)

    def restart(self, *, now: float | None = None) -> None:
        """What was measured of this window is void: rows were held back for another reason."""
        with self._lock:
            self._begin(time.monotonic() if now is None else now)

    def _begin(self, now: float) -> None:
        self._finished, self._work, self._since = 0, 0.0, now

    def _judge(self, rate: float) -> None:
        if self._before:
            asked = 1 + (self.gain - 1) * min((self.limit - self._before) / self._before, 1.0)
            if rate < asked * self._best:
                self.limit, self._before = self._before, 0
                self._doubling, self._quiet = False, 0
                return
            self._before, self._best = 0, rate
        elif rate < self.loss * self._best:
            self._low += 1
            if self._low < _LOW_WINDOWS:
                return
            self._low = 0
            self.limit = max(self.limit * 3 // 4, 1)
            self._best, self._quiet, self._doubling = rate, 0, False
            return
        else:
            self._low = 0
            # The rate of late counts more than one of long ago: rows differ.
            self._best = (self._best + rate) / 2 if self._best else rate
        self._try_more()

    def _try_more(self) -> None:
        self._quiet += 1
        if self.limit >= self.most or not (self._doubling or self._quiet > self.patience):
            return
        self._before, self._quiet = self.limit, 0
        self.limit = min(self.limit * 2 if self._doubling else self.limit + 1, self.most)


def throttle_for(model: LanguageModel, at_once: int = 0) -> Throttle:
    """The limit to begin with.

    Args:
        model: One that computes one request at a time gets one row ahead; a server gets more.
        at_once: So many rows, if the person says it, while the server takes them; 0 finds it by
            measuring.
    """
    if at_once:
        return Throttle(limit=at_once, most=at_once, loss=0.0)
    at_a_time = num_at_once(model)
    if at_a_time == 1:
        return Throttle(most=at_a_time + _ONE_AHEAD)
    return Throttle(limit=_FIRST_OF_A_SERVER, most=max(at_a_time, _MOST_OF_A_SERVER))
