"""Zip packages (EPUB, DOCX, ODT), read within limits that hold for what really comes out."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memory.errors import (
    DocumentNotFound,
    DocumentTooLarge,
    EmptyDocument,
    PasswordNeeded,
    UnreadableDocument,
)

_STEP_BYTES = 2**20
# What zipfile raises on damaged parts; a name that cannot be decoded is a ValueError.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError),
    *(RuntimeError, LookupError),
)


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What a package may unpack to; only the parts that are read count.

    Attributes:
        total_bytes: All read parts together.
        part_bytes: One part.
        ratio: Most that a part may be larger unpacked than packed …
        ratio_from_bytes: … once it is larger than this (small ones compress well by nature).
        num_entries: Most files in the package.
    """

    total_bytes: int = 512 * 2**20
    part_bytes: int = 256 * 2**20
    ratio: int = 200
    ratio_from_bytes: int = 50 * 2**20
    num_entries: int = 100_000


@dataclass(slots=True)
class Archive:
    """An open package.

    Attributes:
        name: Its file name, for messages.
        zip: The package itself.
        limits: What it may unpack to.
    """

    name: str
    zip: zipfile.ZipFile
    limits: ArchiveLimits
    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    _total_bytes: int = field(default=0, init=False)

    @property
    def names(self) -> frozenset[str]:
        """Paths of all its files."""
        return frozenset(self.zip.NameToInfo)

    def read(self, name: str) -> bytes:
        """A part's bytes.

        Raises:
            KeyError: there is no such part.
            DocumentTooLarge: it or all parts read so far are past a limit.
            PasswordNeeded: it is encrypted.
            UnreadableDocument: it is damaged.
        """
        info = self.zip.getinfo(name)
        if info.flag_bits & 1:
            raise PasswordNeeded(
                f"{self.name!r} is a zip with a password; unpack it and add what is inside"
            )
        room = self._room(info)
        if info.file_size > room:  # no need to unpack what says so itself
            raise self._too_large(name, info.file_size)
        pieces, size = [], 0
        try:
            with self.zip.open(info) as part:
                while piece := part.read(_STEP_BYTES):
                    size += len(piece)
                    if size > room:
                        raise self._too_large(name, size)
                    pieces.append(piece)
        except _DAMAGE as error:
            raise UnreadableDocument(
                f"{name!r} in {self.name!r} is damaged ({error}); get the file anew"
            ) from error
        self._total_bytes += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        return b"".join(pieces)

    def _room(self, info: zipfile.ZipInfo) -> int:
        """Most bytes that a part may unpack to."""
        limits = self.limits
        by_ratio = max(limits.ratio_from_bytes, limits.ratio * info.compress_size)
        others_bytes = self._total_bytes - self._sizes.get(info.filename, 0)
        return min(limits.part_bytes, limits.total_bytes - others_bytes, by_ratio)

    def _too_large(self, name: str, size: int) -> DocumentTooLarge:
        return DocumentTooLarge(
            f"{name!r} in {self.name!r} unpacks to {size:,} bytes or more, past the limits "
            f"({self.limits.part_bytes:,} a part, {self.limits.total_bytes:,} in all, "
            f"{self.limits.ratio} times its packed size); a sound document of that size "
            "can be split into parts"
        )


@contextmanager
def open_archive(path: Path, limits: ArchiveLimits) -> Iterator[Archive]:
    """The package at ``path``.

    Raises:
        DocumentNotFound: there is no such file.
        EmptyDocument: it has no bytes.
        UnreadableDocument: it is no zip, or a damaged one.
        DocumentTooLarge: it has more files than the limit.
    """
    try:
        if path.stat().st_size == 0:
            raise EmptyDocument(f"{path.name!r} has no bytes; perhaps it was not copied whole")
        package = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise DocumentNotFound(f"there is no file {str(path)!r}") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(
            f"{path.name!r} is damaged: {error}; it may be cut off, so get the file anew"
        ) from error
    with package:
        if len(package.filelist) > limits.num_entries:
            raise DocumentTooLarge(
                f"{path.name!r} holds {len(package.filelist):,} files and at most "
                f"{limits.num_entries:,} are allowed; split it into parts"
            )
        yield Archive(path.name, package, limits)
