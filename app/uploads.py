"""Files on their way into the library: streamed to disk, hashed while they come."""

import hashlib
import time
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from app.lookup import clean

_LEFT_ALONE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that has wholly come.

    Attributes:
        id: Its name in the folder of uploads.
        name: What the person calls it.
        digest: SHA-256 of its bytes, hexadecimal.
        size_bytes: Of the file.
    """

    id: str
    name: str
    digest: str
    size_bytes: int


class Uploads:
    """The folder of files that wait to be read into a library."""

    def __init__(self, library_folder: Path) -> None:
        self.folder = library_folder / "incoming"

    def path(self, upload: str) -> Path:
        """Where an upload lies."""
        return self.folder / upload

    def receive(self, name: str, blocks: Iterable[bytes]) -> Upload:
        """Takes a file in, block by block; nothing of it is left if that fails.

        Raises:
            OSError: the disk does not take it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        id = uuid.uuid4().hex
        digest, size_bytes = hashlib.sha256(), 0
        try:
            with self.path(id).open("xb") as file:
                for block in blocks:
                    file.write(block)
                    digest.update(block)
                    size_bytes += len(block)
        except BaseException:
            self.remove(id)
            raise
        return Upload(id, clean(name), digest.hexdigest(), size_bytes)

    def remove(self, upload: str) -> None:
        """Removes an upload."""
        self.path(upload).unlink(missing_ok=True)

    def sweep(self, known: Collection[str]) -> int:
        """Removes uploads that nobody waits for and that are an hour old; returns how many."""
        removed = 0
        for path in self.folder.glob("*"):
            if path.name in known or time.time() - path.stat().st_mtime < _LEFT_ALONE_S:
                continue
            path.unlink(missing_ok=True)
            removed += 1
        return removed
