"""Opening a library's database: engine, pragmas, migrations, errors in words."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from memory.errors import LibraryError, LibraryReadOnly, LibraryTooNew, StorageFull
from serving.errors import MissingExtra

log = logging.getLogger(__name__)

WRITES = "gistree_writes"
"""Execution option of a connection whose transaction will write."""
_BUSY_TIMEOUT_MS = 60_000
_MIGRATIONS = Path(__file__).parent / "migrations"


def sqlite_url(path: Path, *, read_only: bool = False) -> URL:
    """The URL of a SQLite file.

    Args:
        path: The file.
        read_only: Take it as it is: nothing is written, not even the journal that lets others
            write at the same time.
    """
    if not read_only:
        return URL.create("sqlite", database=str(path))
    query = {"mode": "ro", "uri": "true"}
    journal = path.with_name(f"{path.name}-wal")
    if not (journal.exists() and journal.stat().st_size):
        query["immutable"] = "1"  # else SQLite wants to make a journal, even to read
    return URL.create("sqlite", database=path.absolute().as_uri(), query=query)


def connect(url: URL | str) -> Engine:
    """An engine whose SQLite connections keep what they promise.

    Write-ahead logging (readers never wait), foreign keys on, deleted content overwritten, a
    commit on the disk before it returns.

    Raises:
        LibraryError: no such kind of database.
        MissingExtra: its driver is not installed.
    """
    try:
        url = make_url(url)
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise LibraryError(
                f"{url} names no database that gistree keeps libraries in; give a folder, or a URL "
                "such as postgresql://host/name"
            )
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(url, pool_pre_ping=url.get_backend_name() != "sqlite")
    except (ArgumentError, NoSuchModuleError) as error:
        raise LibraryError(
            f"{url} names no database; give a folder, or a URL such as postgresql://host/name"
        ) from error
    except ModuleNotFoundError as error:
        if make_url(url).get_backend_name() != "postgresql":
            raise
        raise MissingExtra(f"a library at {url}", "postgres") from error
    if engine.dialect.name == "sqlite":
        read_only = url.query.get("mode") == "ro"
        event.listen(engine, "connect", _read_only_pragmas if read_only else _pragmas)
        event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Begins a transaction of SQLite.

    It fails at once, without waiting, where one that has read wants to write and another one has
    written meanwhile; one that says first that it will write waits its turn.
    """
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _pragmas(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late
    for pragma in (
        f"busy_timeout={_BUSY_TIMEOUT_MS}",
        "auto_vacuum=INCREMENTAL",  # takes effect in a new file only
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _read_only_pragmas(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turns the database's and the disk's failures into ours.

    Args:
        where: The library, as the person knows it.
    """
    try:
        yield
    except DBAPIError as error:
        said = str(error.orig).lower()
        if "readonly" in said or "read-only" in said or "permission denied" in said:
            raise LibraryReadOnly(
                f"{where} cannot be written; change its permissions or open another library"
            ) from error
        # SQLite's IOERR_SHMSIZE: no room for the index of its journal, which it needs even to read.
        name = getattr(error.orig, "sqlite_errorname", "")
        if "is full" in said or "no space left" in said or name == "SQLITE_IOERR_SHMSIZE":
            raise _full(where) from error
        if name.startswith("SQLITE_IOERR"):
            raise LibraryError(
                f"the disk of {where} fails or is full ({name}); see that it has room, and run the "
                "same command again: what was finished is kept"
            ) from error
        if "unable to open" in said or "not a database" in said or "malformed" in said:
            raise LibraryError(f"{where} cannot be opened as a library: {error.orig}") from error
        if "database is locked" in said:
            raise LibraryError(
                f"another process has kept {where} busy for {_BUSY_TIMEOUT_MS // 1000} s; "
                "wait for it, or end it"
            ) from error
        if error.connection_invalidated or isinstance(error, InterfaceError | OperationalError):
            why = " ".join(str(error.orig).split())
            raise LibraryError(
                f"the database of {where} failed ({why}); see that it runs, and try again: "
                "what was finished is kept"
            ) from error
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _full(where) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LibraryReadOnly(f"{where} cannot be written: {error}") from error
        raise


def _full(where: str) -> StorageFull:
    return StorageFull(
        f"no space is left where {where} lies; free some and run the same command again: "
        "what was finished is kept"
    )


def _lost(where: str) -> LibraryError:
    return LibraryError(
        f"the database of {where} is gone or empty, but files of its documents are there; put it "
        "back from a backup (gistree restore, into another folder), or move that folder away to "
        "begin anew"
    )


def revisions() -> list[str]:
    """The forms that the tables have had, the oldest first: each file there begins with one."""
    return sorted(p.name.split("_")[0] for p in (_MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def migrate(engine: Engine, *, where: str, read_only: bool = False, may_begin: bool = True) -> None:
    """Brings the tables to this version's form, or makes them.

    Args:
        engine: Of the library.
        where: The library, as the person knows it.
        read_only: Only look whether they have that form.
        may_begin: Make them where there are none.

    Raises:
        LibraryError: there are none, and they may not be made.
        LibraryTooNew: a newer version made them.
        LibraryReadOnly: they need a change and may not have it.
    """
    known = revisions()
    if not may_begin and engine.dialect.name == "sqlite" and not read_only:
        database = Path(engine.url.database or "")
        if not (database.exists() and database.stat().st_size):
            raise _lost(
                where
            )  # before SQLite puts a journal there, which a backup would be read with
    with engine.connect() as connection:
        made = inspect(connection).has_table("alembic_version")
        current = connection.scalar(text("SELECT version_num FROM alembic_version")) if made else ""
    if current == known[-1]:
        return
    if current and current not in known:
        raise LibraryTooNew(
            f"{where} was made by a newer gistree (its format is {current}); "
            "upgrade: pip install -U gistree"
        )
    if not current and not may_begin:
        raise _lost(where)
    if read_only:
        raise LibraryReadOnly(
            f"{where} was made by an older gistree; open it once with the right to write"
            if current
            else f"{where} holds no library yet, and nothing may be written there"
        )
    # Alembic takes half a second to load, and most of the time there is nothing to do.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    log.info("migrate from=%s to=%s", current or "nothing", known[-1])
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # One process migrates, others wait: BEGIN alone would let two pass the check above.
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4811)")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
