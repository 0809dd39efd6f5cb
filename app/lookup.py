"""From what a person names to what is meant: documents of the library, and files."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from memory.errors import DocumentError, DocumentNotFound
from memory.store import Entry

_LEAST_ID = 4  # characters of an id that may stand for it
_LEAST_ID_EXACT = 8  # as many as are shown: no year, no number of a file


def find(entries: Sequence[Entry], name: str, *, exact: bool = False) -> Entry:
    """The one document that a name means: its id, name or title, an id's beginning, a part.

    Args:
        entries: Of the library.
        name: As the person gave it. A part begins where a word of the name or title does:
            "persuasion" means "Persuasion.txt", and "0.txt" does not mean "10.txt".
        exact: A part is not enough: for what cannot be undone, and where no person looks on.

    Raises:
        DocumentNotFound: there is none, or several fit.
    """
    least = _LEAST_ID_EXACT if exact else _LEAST_ID
    for fits in (
        [e for e in entries if e.id == name],
        [e for e in entries if name in (e.name, e.title)],
        [e for e in entries if len(name) >= least and e.id.startswith(name)],
    ):
        if fits:
            return _only(fits, name)
    part = re.compile(rf"(?<!\w){re.escape(name)}", re.IGNORECASE)
    parts = [e for e in entries if name and part.search(f"{e.name}\n{e.title}")]
    if parts and not exact:
        return _only(parts, name)
    near = f"; its whole name is wanted here, as {parts[0].name!r} is one" if parts else ""
    raise DocumentNotFound(
        f"the library holds no document {clean(name)!r}{near}; see: gistree list"
    )


def _only(fits: Sequence[Entry], name: str) -> Entry:
    if len(fits) == 1:
        return fits[0]
    several = ", ".join(f"{e.id[:8]} ({e.name})" for e in fits[:5])
    raise DocumentNotFound(f"{name!r} fits several documents: {several}; give an id")


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
