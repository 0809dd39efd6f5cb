"""From what a person names to what is meant: documents of the library, and files."""

import os
from collections.abc import Sequence
from pathlib import Path

from memory.errors import DocumentError, DocumentNotFound
from memory.store import Entry

_LEAST_ID = 4  # characters of an id that may stand for it


def find(entries: Sequence[Entry], name: str) -> Entry:
    """The one document that a name means: its id, name or title, an id's beginning, a part.

    Raises:
        DocumentNotFound: there is none, or several fit.
    """
    part = name.casefold()
    for fits in (
        [e for e in entries if e.id == name],
        [e for e in entries if name in (e.name, e.title)],
        [e for e in entries if len(name) >= _LEAST_ID and e.id.startswith(name)],
        [e for e in entries if part and part in f"{e.name}\n{e.title}".casefold()],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            several = ", ".join(f"{e.id[:8]} ({e.name})" for e in fits[:5])
            raise DocumentNotFound(f"{name!r} fits several documents: {several}; give an id")
    raise DocumentNotFound(f"the library holds no document {clean(name)!r}; see: gistree list")


def readable(source: str | Path, what: str) -> Path:
    """The path of something that is there and may be read."""
    shown = clean(str(source))
    try:
        path = Path(source).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError, RuntimeError) as error:
        # RuntimeError: "~name" of a person whom this machine does not know.
        raise DocumentNotFound(f"there is no {what} {shown}") from error
    except OSError as error:
        raise DocumentError(f"{shown} cannot be read: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise DocumentError(f"{shown} cannot be read; change its permissions")
    return path


def clean(text: str) -> str:
    """Text that can be kept, shown and sent: no NUL, no lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
