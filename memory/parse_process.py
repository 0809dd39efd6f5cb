"""A parse worker seen from its parent: started, watched, and ended whatever happens."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from memory.wire import Message, from_line

# The worker finds the packages where this process finds them, and nothing in its own folder.
_START = (
    "import json,sys;request=json.loads(sys.stdin.readline());sys.path[:]=request.pop('sys_path');"
    "from memory.parse_worker import main;main(request)"
)
# What a Python needs to start. The rest of the environment may hold secrets, and a hostile file
# may come to own the worker.
_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("SYSTEMROOT", "USERPROFILE", "OMP_NUM_THREADS", "PYTHONHOME"),
)
_POLL_S = 0.05
_LAST_BREATH_S = 5.0
_MAX_LINE_BYTES = 256 * 2**20
_LOG_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may take.

    Attributes:
        memory_bytes: Resident memory of the worker.
        stall_s: Seconds without a word from it; one scanned page takes several.
        total_s: Seconds in all; None for no bound, since a long scan takes hours.
        output_bytes: What it may send, about the size of the text.
        num_pages: Most pages.
    """

    memory_bytes: int = 1536 * 2**20
    stall_s: float = 120.0
    total_s: float | None = None
    output_bytes: int = 512 * 2**20
    num_pages: int = 200_000


End = Literal["memory", "stall", "time", "output", "garbled"]
"""Why the parent ended a worker."""


class ParseProcess:
    """A worker that reads one file; a context manager, which leaves nothing running behind."""

    def __init__(
        self, path: Path, *, name: str, parser: str, password: str | None, limits: Limits
    ) -> None:
        self.ended_for: End | None = None
        self.peak_bytes = 0
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="gistree-", ignore_cleanup_errors=True)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=self._folder.name,
            env=environment(self._folder.name),
            start_new_session=True,  # Ctrl-C is the parent's, who ends the worker
        )
        self._request = {
            "sys_path": [os.path.abspath(entry) for entry in sys.path],
            "path": str(path.absolute()),
            "name": name,
            "parser": parser,
            "password": password,
            "folder": self._folder.name,
            "parent": os.getpid(),
            "memory_bytes": 2 * limits.memory_bytes,  # a burst that the watch would see too late
        }
        self._waits_since: float | None = None
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._keep_watch, daemon=True)

    def __enter__(self) -> Self:
        """Gives the worker its file."""
        self._watch.start()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; then messages() ends at once
            self._process.stdin.write(json.dumps(self._request).encode() + b"\n")
            self._process.stdin.flush()  # and stays open: its end is the sign that we are gone
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the worker and all that it started, and removes its folder."""
        self._done.set()
        self._kill()
        self._watch.join()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()
        self._process.wait()
        self._folder.cleanup()

    def messages(self) -> Iterator[Message]:
        """What the worker says, until it has no more to say or was ended."""
        out = self._process.stdout
        assert out is not None
        num_bytes = 0
        while True:
            self._waits_since = time.monotonic()
            line = out.readline(_MAX_LINE_BYTES)
            self._waits_since = None
            num_bytes += len(line)
            if not line.endswith(b"\n"):  # the pipe's end, or a line cut off by the worker's
                break
            if num_bytes > self._limits.output_bytes:
                self._end("output")
                break
            try:
                message = from_line(line)
            except ValueError:
                self._end("garbled")
                break
            yield message
        try:
            self._process.wait(_LAST_BREATH_S)
        except subprocess.TimeoutExpired:  # it has closed the pipe and lives on
            self._end("garbled")
            self._process.wait()

    @property
    def signal(self) -> int:
        """Number of the signal that ended the worker, 0 if it ended otherwise."""
        code = self._process.returncode
        return -code if code is not None and code < 0 else 0

    def log(self) -> str:
        """The end of what the worker and its libraries wrote to standard error."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_BYTES))
        return self._log.read().decode("utf-8", "replace")

    def _keep_watch(self) -> None:
        import psutil

        started = time.monotonic()
        limits = self._limits
        try:
            process = psutil.Process(self._process.pid)
            while not self._done.wait(_POLL_S):
                resident = process.memory_info().rss
                self.peak_bytes = max(self.peak_bytes, resident)
                now, waits_since = time.monotonic(), self._waits_since
                if resident > limits.memory_bytes:
                    return self._end("memory")
                if waits_since is not None and now - waits_since > limits.stall_s:
                    return self._end("stall")
                if limits.total_s is not None and now - started > limits.total_s:
                    return self._end("time")
        except psutil.NoSuchProcess:
            return  # it has ended by itself

    def _end(self, why: End) -> None:
        self.ended_for = self.ended_for or why
        self._kill()

    def _kill(self) -> None:
        if sys.platform == "win32":
            self._process.kill()
            return
        # The process itself is not waited for yet, so that its number is still its own.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def environment(folder: str) -> dict[str, str]:
    """What a worker is started with: no secrets, no network by habit, its own folder to write."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    caches = dict.fromkeys(
        ("TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "HF_HOME", "LLAMA_INDEX_CACHE_DIR"), folder
    )
    return {**kept, **offline, **caches, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
