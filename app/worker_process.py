"""A process that does jobs, seen from its foreman."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

from app.owner import new_owner
from app.settings import Settings
from memory.job_book import Job

# It finds the packages where this process finds them.
_START = (
    "import json,sys;request=json.loads(sys.stdin.readline());sys.path[:]=request['sys_path'];"
    "from app.job_worker import main;main(request['place'],request['settings'])"
)


class WorkerProcess:
    """A process for one lane: it has one job, or none."""

    def __init__(self, place: str, settings: Settings) -> None:
        """Starts it.

        Args:
            place: The library's folder or URL.
            settings: To open it with.
        """
        self.job_id = ""
        self.owner = ""
        self.idle_since = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the server's, who ends the worker
        )
        paths = [os.path.abspath(entry) for entry in sys.path]
        self._say({"sys_path": paths, "place": place, "settings": settings.model_dump(mode="json")})
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def new_owner(self) -> str:
        """A name under which this process may own a job."""
        return new_owner(self.pid)

    def hand_over(self, job: Job, *, owner: str, secret: str) -> None:
        """Gives it a job that was claimed for it."""
        self.job_id, self.owner = job.id, owner
        self._say({"job": job.id, "owner": owner, "secret": secret})

    def kill(self) -> None:
        """Ends it at once, whatever it does."""
        self._process.kill()
        self._close()

    def release(self) -> None:
        """Lets it end: it has nothing to do."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    def _close(self) -> None:
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not sent is of no use any more
                if pipe is not None:
                    pipe.close()

    def _say(self, line: dict[str, object]) -> None:
        with suppress(OSError):  # it has just died; the foreman will see that
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(line) + "\n")
                self._process.stdin.flush()

    def _listen(self) -> None:
        if self._process.stdout is None:
            return
        for _line in self._process.stdout:
            self.job_id, self.owner, self.idle_since = "", "", time.monotonic()
