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


def files_in(folder: Path, *, but: Path) -> list[Path]:
    """The files under a folder in order, without hidden ones.

    Args:
        folder: Where to look.
        but: A folder that is left out: the library's own.
    """
    own = but.resolve()
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not path.resolve().is_relative_to(own)
    )


def expanded(name: str, *, but: Path) -> list[Path]:
    """The files that a person means: a file, a folder's, or those that a pattern fits.

    Args:
        name: A path, or a pattern such as "reports/**/*.pdf".
        but: As of ``files_in``.

    Raises:
        DocumentNotFound: nothing is there.
    """
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        found = files_in(Path(path), but=but)
        if not found:
            raise DocumentNotFound(f"there are no files in {clean(name)}")
        return found
    if os.path.lexists(path) or not glob.has_magic(path):
        return [Path(name)]  # whoever adds it says what is wrong with it
    matches = map(Path, sorted(glob.glob(path, recursive=True)))
    found = [match for match in matches if match.is_file()]
    if not found:
        raise DocumentNotFound(f"no file fits {clean(name)}")
    return found


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
