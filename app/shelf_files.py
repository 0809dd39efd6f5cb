"""The library's own copies of the files, by content: a copy is whole, or it is not there."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

_BLOCK_BYTES = 1 << 20
_INCOMING = ".incoming-"


class Files:
    """A folder of files named by the SHA-256 of their bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def has_any(self) -> bool:
        """Whether there is a whole file."""
        return any(not path.name.startswith(_INCOMING) for path in self.folder.glob("*/*"))

    def path(self, file: str) -> Path:
        """Where a file lies, by the name that ``file_name`` gave it."""
        return self.folder / file

    def put(self, source: Path, file: str, on_bytes: Callable[[int], None]) -> Path:
        """Copies a file in: it appears under its name only when it is wholly on the disk."""
        target = self.path(file)
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        incoming = target.parent / f"{_INCOMING}{os.getpid()}-{uuid.uuid4().hex}"
        try:
            with source.open("rb") as reading, incoming.open("wb") as writing:
                done = 0
                while block := reading.read(_BLOCK_BYTES):
                    writing.write(block)
                    done += len(block)
                    on_bytes(done)
                writing.flush()
                os.fsync(writing.fileno())
            incoming.replace(target)
        finally:
            incoming.unlink(missing_ok=True)
        return target

    def remove(self, file: str) -> None:
        """Takes a file away; its folder stays, for another process may be about to use it."""
        self.path(file).unlink(missing_ok=True)

    def sweep(self, known: Callable[[], Iterable[str]]) -> list[Path]:
        """Removes what a process that died left; see ``orphans``."""
        removed = self.orphans(known)
        for path in removed:
            path.unlink(missing_ok=True)
        return removed

    def orphans(self, known: Callable[[], Iterable[str]]) -> list[Path]:
        """Files of no document, and half copies, but for those of a process that still lives.

        Args:
            known: Gives the names of the files that belong to documents. It is asked after the
                folder was read: a document is claimed before its file comes, so a file that is
                seen and then not known is nobody's.
        """
        import psutil

        seen = sorted(self.folder.glob("*/*"))
        if not seen:
            return []
        keep = {self.path(file) for file in known()}
        nobodys = []
        for path in seen:
            if path in keep:
                continue
            if path.name.startswith(_INCOMING):
                maker = path.name.removeprefix(_INCOMING).partition("-")[0]
                if maker.isdigit() and psutil.pid_exists(int(maker)):
                    continue
            nobodys.append(path)
        return nobodys


def file_name(digest: str, suffix: str) -> str:
    """Name of a file with these bytes, relative to the folder."""
    return f"{digest[:2]}/{digest}{suffix.lower()}"


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
