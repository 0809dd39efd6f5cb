"""Batches stand back while a person waits for an answer from a model on the same machine."""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)

_SUFFIX = ".asking"
_FORGOTTEN_S = 900.0  # whoever has not come back for the next step in so long is not waiting


class Courtesy:
    """Who asks, across the processes of a machine.

    A question is a locked file, whose lock ends with its process however that ends.
    """

    def __init__(self, folder: Path) -> None:
        """Keeps the files there; all who use one model cache share the folder."""
        self._folder = folder

    @contextmanager
    def asking(self) -> Iterator[Callable[[], None]]:
        """While the block runs, a person waits; call what it gives at each step.

        Where no file can be written, nobody is told.
        """
        name = self._folder / uuid.uuid4().hex
        shown = name.with_suffix(_SUFFIX)
        lock = FileLock(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            # It gets its name once it is locked: before that it would be taken for a dead one's.
            name.rename(shown)
        except OSError as error:
            log.info("batches are not told of the question: %s", error)

        def goes_on() -> None:
            with suppress(OSError):
                os.utime(shown)

        try:
            yield goes_on
        finally:
            lock.release()
            with suppress(OSError):
                shown.unlink()

    def somebody_asks(self) -> bool:
        """Whether a person waits; what a killed process has left is cleared away."""
        for file in self._folder.glob(f"*{_SUFFIX}"):
            lock = FileLock(file)
            try:
                lock.acquire(timeout=0)
            except (Timeout, OSError):
                with suppress(FileNotFoundError):  # answered meanwhile
                    if time.time() - file.stat().st_mtime < _FORGOTTEN_S:
                        return True
                continue
            file.unlink(missing_ok=True)
            lock.release()
        return False
