"""A copy of a SQLite database at one moment, while others read and write it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from memory.database import connect, explained
from memory.errors import LibraryError, StorageFull


def snapshot(source: URL, target: Path, *, where: str) -> None:
    """Copies a SQLite database as it is at one moment; nobody is kept waiting.

    Args:
        source: Of the library, as ``memory.database`` opens it.
        target: The copy.
        where: The library, as the person knows it.

    Raises:
        StorageFull: no room for the copy.
        LibraryError: it cannot be read, or the copy not be written.
    """
    engine = connect(source)
    try:
        with (
            explained(where),
            closing(engine.raw_connection()) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            database: Any = reading.driver_connection
            database.backup(writing)
            writing.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it
    except sqlite3.Error as error:
        if error.sqlite_errorname == "SQLITE_FULL":
            raise StorageFull(f"no space is left for a copy in {target.parent}") from error
        raise LibraryError(f"{where} cannot be copied to {target}: {error}") from error
    finally:
        engine.dispose()


def files_of(database: Path) -> dict[str, bool]:
    """The files that the documents of a copy need, by name; True for those that are wholly in.

    Raises:
        LibraryError: the copy is damaged, or none of a library.
    """
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            (said,) = copy.execute("PRAGMA integrity_check").fetchone()
            if said != "ok":
                raise LibraryError(f"the database {database.name} is damaged: {said}")
            rows = copy.execute("SELECT file, state FROM documents").fetchall()
    except sqlite3.Error as error:
        raise LibraryError(f"{database.name} holds no library: {error}") from error
    return {file: state == "ready" for file, state in rows}
