"""How often work was begun on this machine, for work that may end the process it is done in."""

import contextlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Attempts:
    """Counts on the disk, since the process that counts may be killed by what it begins."""

    def __init__(self, run: str) -> None:
        """Counts for one run.

        Args:
            run: Its name; no two share one.
        """
        self._folder = Path(tempfile.gettempdir()) / f"gistree-attempts-{run}"

    @contextmanager
    def of(self, work: str) -> Iterator[int]:
        """Which attempt at a piece of work this is, from 1; forgotten when the block ends."""
        self._folder.mkdir(exist_ok=True)
        marks = self._folder / work
        with marks.open("ab") as file:
            file.write(b".")
        try:
            yield marks.stat().st_size
        finally:
            marks.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others are at work
                self._folder.rmdir()
