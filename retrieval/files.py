"""Files that are whole or not there."""

import hashlib
import os
from pathlib import Path


def checksum(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def to_disk(path: Path) -> None:
    """Waits until a file, or on POSIX a folder's list of names, is on the disk.

    Raises:
        OSError: the disk is full or broken.
    """
    if path.is_dir() and os.name != "posix":  # Windows keeps folders by itself
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
