"""Ray without its noise: no reports, no open doors, nothing on the screen of who uses gistree."""

import contextlib
import logging
import os
import secrets
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from serving.errors import MissingExtra

log = logging.getLogger(__name__)

_SILENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns of a change to come
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS": "0",  # else it keeps notices back and says them at the end
}


@contextmanager
def quiet_ray(*, secluded: bool) -> Iterator[Any]:
    """Ray's module; the process is as before when the block ends.

    Args:
        secluded: Ray is about to be started here, and must let nobody else in: who reaches its
            ports may run programs.

    Raises:
        MissingExtra: Ray is not installed.
    """
    before = {name for name in os.environ if name.startswith("RAY_")}
    at_sigterm = signal.getsignal(signal.SIGTERM)
    values = _SILENT | (_secluded() if secluded else {})
    os.environ.update({name: value for name, value in values.items() if name not in before})
    output: Any = _OthersOutput(sys.stdout)
    try:
        with contextlib.redirect_stdout(output):
            yield _imported()
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            if name not in before:
                del os.environ[name]
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, at_sigterm)  # Ray sets its own and leaves it there


@contextmanager
def unsaid() -> Iterator[None]:
    """Drops what is written to standard error: Ray's core greets there before it can be told."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@cache
def _secluded() -> dict[str, str]:
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system, it listens on 127.0.0.1 alone
        "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else it leaves one in the person's home
    }


def _imported() -> Any:
    try:
        with warnings.catch_warnings():
            # Ray Data sets options of its own that it has given up.
            warnings.simplefilter("ignore", DeprecationWarning)
            import ray
            import ray.data

            ray.data.DataContext.get_current()
    except ModuleNotFoundError as error:
        raise MissingExtra("a batch on a cluster", "ray") from error
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return ray


class _OthersOutput:
    """Standard output for all but Ray's threads, which tell there of every worker that is lost."""

    def __init__(self, output: Any) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Writes a text, or puts it in the log."""
        if threading.current_thread().name.startswith("ray_"):
            if text.strip():
                log.info("ray says %s", text.strip())
            return len(text)
        return int(self._output.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)
