"""Documents that lie elsewhere, copied into a library."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.elsewhere import NotReached, fetch, files_under, name_of, shown
from app.library import Failure, Library
from app.lookup import clean
from app.progress import OnProgress, Progress, silent
from memory.errors import DocumentError
from memory.store import Entry
from serving.errors import MissingExtra


def add_from(
    library: Library,
    url: str,
    *,
    password: str | None = None,
    tags: Sequence[str] = (),
    on_progress: OnProgress = silent,
) -> tuple[tuple[Entry, ...], tuple[Failure, ...]]:
    """Adds a file by its address, or every file under a folder; see ``Library.add_folder``.

    Args:
        library: Takes them, and keeps copies of its own.
        url: For example s3://bucket/reports/ or https://host/paper.pdf.
        password: For encrypted files.
        tags: Put on each.
        on_progress: Told how far each is.

    Returns:
        What was added (or was there already), and what failed.
    """
    added: list[Entry] = []
    failed: list[Failure] = []
    try:
        addresses = files_under(url)
    except (NotReached, MissingExtra) as error:
        return (), (Failure(shown(url), error),)
    for address in addresses:
        name = clean(name_of(address)) or "document"
        with tempfile.TemporaryDirectory(prefix="gistree-") as folder:
            path = Path(folder) / f"document{Path(name).suffix}"
            on_progress(Progress(name, "fetch"))
            try:
                fetch(address, path)
                added.append(
                    library.add(
                        path, name=name, password=password, tags=tags, on_progress=on_progress
                    )
                )
            except (DocumentError, MissingExtra, NotReached) as error:
                failed.append(Failure(shown(address), error))
    return tuple(added), tuple(failed)
