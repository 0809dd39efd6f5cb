"""The server of the pages as a process, and waiting for a page to be at rest."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress

from door import Door


class Site:
    """A server of the pages, as a process of its own."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Site":
        self.log = (self.door.home / "server.log").open("ab")
        self.process = self.door.start(
            "ui", "--port", str(self.port), "--no-browser", stdout=self.log, stderr=self.log
        )
        for _ in range(300):
            if self.process.poll() is not None:
                break
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/_stcore/health"):
                return self
            time.sleep(0.1)
        raise AssertionError((self.door.home / "server.log").read_text())

    def stop(self) -> None:
        """As a person does: by Ctrl-C."""
        self._end(lambda process: process.terminate())

    def kill(self) -> None:
        """As a power cut does."""
        self._end(lambda process: process.kill())

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        if self.process is not None:
            how(self.process)
            self.process.wait(30)
            self.log.close()
            self.process = None


def at_rest(page) -> None:
    """Waits until the script behind a page has ended."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')


def free_port() -> int:
    """A port of this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
