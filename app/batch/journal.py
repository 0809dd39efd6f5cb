"""The answers of a batch on the disk, one line each, kept before the next is counted."""

import errno
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from io import BufferedReader, FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.batch.errors import BatchError, OutputNotWritable
from app.batch.tally import Status, Tally
from memory.database import explained
from memory.errors import StorageFull

_MOST_ROWS = 1 << 32  # a number past it is none of ours


class Journal:
    """A file of JSON lines to which whole lines are added, each on the disk before ``add`` returns.

    A last line that was torn by a crash is cut off when the file is opened. One process at a time
    may hold it. Every method may be called from several threads.

    Attributes:
        status: Of each row by its number, for rows that are in the file.
    """

    def __init__(self, path: Path, *, dry: bool = False) -> None:
        """Opens a file, or makes one.

        Args:
            path: Of the file.
            dry: The file is looked at and stays as it is; ``clear`` and ``forget`` only count.

        Raises:
            OutputNotWritable: it cannot be written, or another process holds it.
            BatchError: it holds something else than answers.
        """
        from filelock import FileLock, Timeout

        self.path = path
        self.status = Tally()
        self._dry = dry
        self._source = Path(os.devnull) if dry and not path.exists() else path
        self._thread = threading.Lock()
        self._lock = FileLock(f"{path}.lock")
        try:
            if not dry:
                self._lock.acquire(timeout=0)
            self._file = FileIO(self._source, "r" if dry else "a+")
        except Timeout as error:
            raise OutputNotWritable(f"another process is writing {path}; wait for it") from error
        except OSError as error:
            self._lock.release()
            raise OutputNotWritable(f"{path} cannot be written: {error}") from error
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The journal itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Gives the file back."""
        try:
            self._file.close()
        finally:
            self._lock.release()

    def _read(self) -> None:
        # Unbuffered for writing: what a full disk has refused must not come later, by itself.
        self._file.seek(0)
        end = 0
        for line in BufferedReader(FileIO(self._file.fileno(), closefd=False)):
            if not line.endswith(b"\n"):
                break  # torn: the row was never counted
            row = _row_of(self.path, line)
            self.status.put(row["row"], row["status"])
            end += len(line)
        if not self._dry:
            self._file.truncate(end)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keeps a row; it has ``row`` (its number) and ``status``.

        Raises:
            StorageFull: no space is left; the rows before it are kept.
            OutputNotWritable: the disk fails.
        """
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        data = line.encode("utf-8", errors="replace") + b"\n"
        with self._thread:
            place = self._file.seek(0, os.SEEK_END)
            try:
                left = memoryview(data)
                while left:
                    left = left[self._file.write(left) :]
                os.fsync(self._file.fileno())
            except OSError as error:
                self._cut(place)
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise StorageFull(
                        f"no space is left where {self.path} lies; free some and run the same "
                        "command again: finished rows are kept"
                    ) from error
                raise OutputNotWritable(f"{self.path} cannot be written: {error}") from error
            self.status.put(row["row"], row["status"])

    def _cut(self, place: int) -> None:
        """Takes half a line away again; where even that fails the next start does it."""
        try:
            self._file.truncate(place)
        except OSError:
            return

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows in the order in which they were finished."""
        with self._source.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield _row_of(self.path, line)

    def clear(self) -> None:
        """Takes all rows out."""
        with self._thread:
            if not self._dry:
                self._file.truncate(0)
            self.status = Tally()

    def forget(self, status: Status) -> int:
        """Takes the rows of a status out, so that they are asked again; returns how many."""
        gone = self.status.count(status)
        if not gone:
            return 0
        with self._thread:
            kept = (row for row in self.rows() if row["status"] != status)
            if self._dry:
                self.status = Tally()
                for row in kept:
                    self.status.put(row["row"], row["status"])
                return gone
            lines = (json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in kept)
            with explained(f"the folder of {self.path}"):
                write_whole(self.path, (f"{line}\n".encode() for line in lines))
            self._file.close()
            self._file = FileIO(self.path, "a+")
            self.status = Tally()
            self._read()
        return gone


def write_whole(path: Path, parts: Iterator[bytes]) -> None:
    """Writes a file that is there wholly or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _row_of(path: Path, line: bytes) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
        if 0 <= int(row["row"]) < _MOST_ROWS and row["status"] in ("ok", "error"):
            return row
    except (ValueError, KeyError, TypeError):
        pass
    raise BatchError(
        f"{path} holds a line that is no answer of a batch: {line[:60]!r}; choose another output"
    )
