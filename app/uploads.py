"""Files on their way into the library: streamed to disk, hashed while they come."""

import hashlib
import json
import re
import time
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.lookup import clean

_LEFT_ALONE_S = 3600.0
_RECEIPT = b'{"gistree-upload": "'
_ID = re.compile("[0-9a-f]{32}")


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

    def receipt(self) -> bytes:
        """Stands for the file between the server and the page."""
        given = {"gistree-upload": self.id, "digest": self.digest, "size_bytes": self.size_bytes}
        return json.dumps(given).encode()


class Uploads:
    """The folder of files that wait to be read into a library."""

    def __init__(self, library_folder: Path, *, landing: Path | None = None) -> None:
        """The folder of a library.

        Args:
            library_folder: The library's.
            landing: The folder of one that files come to before it is known whose they are.
        """
        self.folder = library_folder / "incoming"
        self._landing = None if landing is None else landing / "incoming"

    def path(self, upload: str) -> Path:
        """Where an upload lies."""
        return self.folder / upload

    def begin(self, name: str) -> "Incoming":
        """A file that begins to come.

        Raises:
            OSError: the disk does not take it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        return Incoming(self, clean(name))

    def receive(self, name: str, blocks: Iterable[bytes]) -> Upload:
        """Takes a file in, block by block; nothing of it is left if that fails.

        Raises:
            OSError: the disk does not take it.
        """
        incoming = self.begin(name)
        try:
            for block in blocks:
                incoming.write(block)
            return incoming.end()
        except BaseException:
            incoming.abandon()
            raise

    def from_page(self, name: str, content: bytes) -> Upload:
        """The upload that a page was given: mostly a receipt for what is on the disk already.

        Args:
            name: What the person calls it.
            content: A receipt, or the file itself where the server does not write them.
        """
        try:
            given = json.loads(content) if content.startswith(_RECEIPT) else {}
        except (ValueError, RecursionError):
            given = {}
        id = str(given.get("gistree-upload", ""))
        if _ID.fullmatch(id) and self._has_come(id):
            return Upload(id, clean(name), str(given["digest"]), int(given["size_bytes"]))
        return self.receive(name, [content])

    def _has_come(self, upload: str) -> bool:
        landed = None if self._landing is None else self._landing / upload
        if landed is not None and landed.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            landed.replace(self.path(upload))
        return self.path(upload).exists()

    def remove(self, upload: str) -> None:
        """Removes an upload."""
        self.path(upload).unlink(missing_ok=True)

    def sweep(self, known: Collection[str]) -> int:
        """Removes uploads that nobody waits for and that are an hour old; returns how many."""
        removed = 0
        for path in self.folder.glob("*"):
            with suppress(FileNotFoundError):  # another process sweeps, too
                if path.name in known or time.time() - path.stat().st_mtime < _LEFT_ALONE_S:
                    continue
                path.unlink()
                removed += 1
        return removed


class Incoming:
    """A file that comes, block by block."""

    def __init__(self, uploads: Uploads, name: str) -> None:
        self._uploads = uploads
        self._name = name
        self._id = uuid.uuid4().hex
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        self._file = uploads.path(self._id).open("xb")

    def write(self, block: bytes) -> None:
        """Takes a block in."""
        self._file.write(block)
        self._digest.update(block)
        self._size_bytes += len(block)

    def end(self) -> Upload:
        """All of it has come."""
        self._file.close()
        return Upload(self._id, self._name, self._digest.hexdigest(), self._size_bytes)

    def abandon(self) -> None:
        """It will not come."""
        self._file.close()
        self._uploads.remove(self._id)
