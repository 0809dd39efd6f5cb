"""Many files at once: which there are, and several of them taken in at a time."""

import glob
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from app.lookup import clean
from app.progress import OnProgress, Progress
from memory.errors import DocumentError, DocumentNotFound
from memory.store import Entry
from serving.errors import MissingExtra

Trouble = DocumentError | MissingExtra
"""Why one file could not be added, which stops no other."""


class _Stopped(Exception):
    """The run has ended: what was finished of a file is kept, and the next start goes on."""


def files_in(folder: Path, *, but: Path, on_error: Callable[[OSError], None]) -> list[Path]:
    """The files under a folder in order, without hidden ones; others may be at work in it.

    Args:
        folder: Where to look.
        but: A folder that is left out: the library's own.
        on_error: Told of a folder or a file that cannot be looked at (``error.filename``); the
            others are found.
    """
    own = but.resolve()
    found = []
    for parent, folders, names in os.walk(folder, onerror=on_error):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(parent, name) for name in names if not name.startswith(".")):
            try:
                if path.is_file() and not path.resolve().is_relative_to(own):
                    found.append(path)
            except OSError as error:
                on_error(error)
    return sorted(found)


def expanded(name: str, *, but: Path) -> tuple[list[Path], list[tuple[Path, DocumentError]]]:
    """The files that a person means: a file, a folder's, or those that a pattern fits.

    Args:
        name: A path, or a pattern such as "reports/**/*.pdf".
        but: As of ``files_in``.

    Returns:
        The files, and what cannot be looked at, such as a folder without permission.

    Raises:
        DocumentNotFound: nothing is there.
    """
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        unread: list[tuple[Path, DocumentError]] = []

        def keep(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):  # it has gone since it was seen
                why = f"{clean(str(error.filename))} cannot be looked at: {error.strerror}"
                unread.append((Path(error.filename), DocumentError(why)))

        found = files_in(Path(path), but=but, on_error=keep)
        if not found and not unread:
            raise DocumentNotFound(f"there are no files in {clean(name)}")
        return found, unread
    if os.path.lexists(path) or not glob.has_magic(path):
        return [Path(name)], []  # whoever adds it says what is wrong with it
    matches = map(Path, sorted(glob.glob(path, recursive=True)))
    found = [match for match in matches if match.is_file()]
    if not found:
        raise DocumentNotFound(f"no file fits {clean(name)}")
    return found, []


def add_many(
    add: Callable[[Path, OnProgress], Entry],
    paths: Iterable[Path],
    *,
    workers: int,
    on_progress: OnProgress,
) -> Iterator[tuple[Path, Entry | Trouble]]:
    """Adds files, several at a time; one that cannot be read stops no other.

    Each worker is a thread with one file, which is parsed in a process of its own: memory is
    bounded by their number. Closing the iterator ends the work within moments; files that were
    being read go on at the next start.

    Args:
        add: Adds one file.
        paths: Files; taken as workers come free.
        workers: How many at a time.
        on_progress: Told how far each is, by one thread at a time.

    Yields:
        Each file as it is finished, and what became of it.

    Raises:
        LibraryError: the library takes no more.
    """
    stopped, telling = threading.Event(), threading.Lock()

    def tell(progress: Progress) -> None:
        if stopped.is_set():
            raise _Stopped
        with telling:
            on_progress(progress)

    def one(path: Path) -> tuple[Path, Entry | Trouble]:
        try:
            return path, add(path, tell)
        except (DocumentError, MissingExtra) as trouble:
            return path, trouble

    running: set[Future[tuple[Path, Entry | Trouble]]] = set()
    with ThreadPoolExecutor(workers, thread_name_prefix="add") as pool:
        try:
            for path in paths:
                running.add(pool.submit(one, path))
                while len(running) >= workers:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        finally:
            stopped.set()
            for future in running:
                future.cancel()


def _finished(
    running: set[Future[tuple[Path, Entry | Trouble]]],
) -> Iterator[tuple[Path, Entry | Trouble]]:
    # A timeout lets Ctrl-C through.
    done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
    for future in done:
        running.discard(future)
        yield future.result()
