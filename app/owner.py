"""Who is at work on a document: a name for this worker, and whether another one still lives."""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from serving.errors import GistreeError

log = logging.getLogger(__name__)

_failed: set[str] = set()
"""Workers of this process that are no longer at work."""


def new_owner(pid: int | None = None) -> str:
    """A name for a worker: host, process (this one where not given), its start, and a number."""
    pid = pid or os.getpid()
    return f"{socket.gethostname()}:{pid}:{_started(pid)}:{uuid.uuid4().hex[:8]}"


@contextmanager
def at_work() -> Iterator[str]:
    """A name for this worker, which is gone where the block fails.

    Such a worker lets go of its claims, but the database that says so may be what failed.
    """
    owner = new_owner()
    try:
        yield owner
    except BaseException:
        _failed.add(owner)
        raise


def is_dead(owner: str) -> bool:
    """Whether that worker is known to be gone; False where it ran on another machine."""
    if owner in _failed:
        return True
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return _started(int(pid)) != int(rest.partition(":")[0])


def _started(pid: int) -> int:
    """When a process started, in whole seconds since the epoch; 0 where there is none."""
    import psutil

    try:
        return int(psutil.Process(pid).create_time())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


class Heartbeat:
    """Calls ``beat`` every ``every_s`` seconds from a thread of its own, within a ``with`` block.

    ``lost`` is set when ``beat`` returns False: somebody else has the work now, or nobody.
    """

    def __init__(self, beat: Callable[[], bool], *, every_s: float) -> None:
        self._beat = beat
        self._every_s = every_s
        self._stop = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gistree-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        """Starts beating."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops beating."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                held = self._beat()
            except GistreeError as error:  # the work itself will say so, where it matters
                log.info("no sign of life could be given: %s", error)
                continue
            if not held:
                self.lost.set()
                return
