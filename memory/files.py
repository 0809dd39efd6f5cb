"""A file's bytes, within bounds."""

from pathlib import Path

from memory.errors import DocumentNotFound, DocumentTooLarge, EmptyDocument


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """All bytes of a file.

    Raises:
        DocumentNotFound: there is none.
        EmptyDocument: it has no bytes.
        DocumentTooLarge: it has more than ``max_bytes``.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise DocumentNotFound(f"there is no file {str(path)!r}") from error
    if size == 0:
        raise EmptyDocument(f"{path.name!r} has no bytes; perhaps it was not saved or copied whole")
    if size > max_bytes:
        raise DocumentTooLarge(
            f"{path.name!r} has {size:,} bytes and at most {max_bytes:,} are read; "
            "split it into parts"
        )
    return path.read_bytes()
