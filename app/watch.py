"""Folders that are watched: what comes is added, what changes is read anew, what goes is told."""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Stop
from typing import Literal

from pydantic import TypeAdapter

from app.batch.journal import write_whole
from app.bulk import files_in
from app.library import Library
from app.lookup import clean
from memory.errors import DocumentNotFound
from memory.store import Entry
from serving.errors import MissingExtra

log = logging.getLogger(__name__)

_SETTLED_S = 2.0
_LOOK_MS = 2_000
_BOOK = "watched.json"
_PARTLY = (".part", ".crdownload", ".download", ".tmp", ".swp", "~")
"""Ends of names that programs give to files that are not whole yet."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was when it was last taken in.

    Attributes:
        size_bytes: Of the file.
        mtime_ns: When it was changed.
        document: Id of what was made of it; empty where it could not be read.
    """

    size_bytes: int
    mtime_ns: int
    document: str


_SEEN = TypeAdapter(dict[str, Seen])


@dataclass(frozen=True, slots=True)
class Event:
    """Something has happened.

    Attributes:
        what: "added", "changed", "failed", "gone" (its document is still there) or "deleted".
        path: Of the file, or of a folder that cannot be looked into ("failed").
        document: Id of its document, or empty.
        why: Why it could not be read, or empty.
    """

    what: Literal["added", "changed", "failed", "gone", "deleted"]
    path: Path
    document: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what} {clean(str(self.path))}" + (f": {self.why}" if self.why else "")


class Watch:
    """Keeps a library in step with folders. What it has seen is kept in the library's folder."""

    def __init__(
        self,
        library: Library,
        folders: Sequence[Path],
        *,
        delete: bool = False,
        workers: int = 2,
        settled_s: float = _SETTLED_S,
    ) -> None:
        """Looks at nothing yet.

        Args:
            library: Takes the files in.
            folders: Watched with all that is under them; hidden and half-written files are not.
            delete: A file that goes takes its document with it.
            workers: Files that are read at a time.
            settled_s: A file that was changed within so many seconds is still being written.

        Raises:
            DocumentNotFound: there is no such folder.
        """
        for folder in folders:
            if not folder.is_dir():
                raise DocumentNotFound(f"there is no folder {clean(str(folder))}")
        self._library = library
        self._folders = [folder.resolve() for folder in folders]
        self._delete = delete
        self._workers = workers
        self._settled_s = settled_s
        self._book = library.place.folder / _BOOK
        self._seen = self._read()
        self._unread: dict[Path, str] = {}

    def catch_up(self) -> Iterator[Event]:
        """Takes in what has come, changed or gone since it last looked.

        Nothing counts as gone that lies in a folder which cannot be looked into: on a share that
        does not answer, for example, or without permission.
        """
        there: dict[Path, tuple[int, int]] = {}
        unread: dict[Path, str] = {}

        def keep(error: OSError) -> None:
            path = Path(error.filename)
            if path in self._folders or not isinstance(error, FileNotFoundError):
                unread[path] = error.strerror or str(error)  # the rest has gone meanwhile

        for folder in self._folders:
            for path in files_in(folder, but=self._library.place.folder, on_error=keep):
                try:
                    status = path.stat()
                except OSError as error:
                    keep(error)
                else:
                    there[path] = (status.st_size, status.st_mtime_ns)
        before, self._unread = self._unread, unread
        for path in unread.keys() - before.keys():
            yield Event("failed", path, why=f"cannot be looked at: {unread[path]}")
        yield from self._gone(set(map(str, there)))
        fresh = [path for path, stamp in there.items() if self._is_due(path, stamp)]
        for path, ended in self._library.add_many(fresh, workers=self._workers):
            yield self._taken(path, there[path], ended)

    def follow(self, stop: Stop) -> Iterator[Event]:
        """Catches up, and goes on as files come, until it is stopped.

        Raises:
            MissingExtra: watchfiles is not installed.
        """
        try:
            from watchfiles import watch
        except ImportError as error:
            raise MissingExtra("watching folders", "watch") from error
        yield from self.catch_up()
        for _ in watch(
            *self._folders, stop_event=stop, rust_timeout=_LOOK_MS, yield_on_timeout=True
        ):
            yield from self.catch_up()

    def _is_due(self, path: Path, stamp: tuple[int, int]) -> bool:
        if path.name.endswith(_PARTLY) or path.name.startswith("~$") or not stamp[0]:
            return False
        seen = self._seen.get(str(path))
        if seen is not None and (seen.size_bytes, seen.mtime_ns) == stamp:
            return False
        return time.time() - stamp[1] / 1e9 >= self._settled_s

    def _taken(self, path: Path, stamp: tuple[int, int], ended: Entry | Exception) -> Event:
        before = self._seen.get(str(path))
        document = ended.id if isinstance(ended, Entry) else ""
        self._seen[str(path)] = Seen(*stamp, document or (before.document if before else ""))
        self._write()
        if not isinstance(ended, Entry):
            return Event("failed", path, why=str(ended))
        if before is None or not before.document:
            return Event("added", path, document)
        if before.document != document:
            self._remove(before.document)
        return Event("changed", path, document)

    def _gone(self, there: set[str]) -> Iterator[Event]:
        mine = tuple(f"{folder}/" for folder in self._folders)
        for name in [n for n in self._seen if n.startswith(mine) and n not in there]:
            if any(Path(name).is_relative_to(folder) for folder in self._unread):
                continue
            document = self._seen.pop(name).document
            self._write()
            deleted = self._delete and document and self._remove(document)
            yield Event("deleted" if deleted else "gone", Path(name), document)

    def _remove(self, document: str) -> bool:
        """Deletes a document that no other watched file stands for; whether it is gone."""
        if any(seen.document == document for seen in self._seen.values()):
            return False
        try:
            self._library.delete(document)
        except DocumentNotFound:
            log.info("deleted already", extra={"document": document})
        return True

    def _read(self) -> dict[str, Seen]:
        try:
            return _SEEN.validate_json(self._book.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:  # damaged: files are hashed again, nothing is read twice
            log.warning("%s is damaged; all files are looked at again", self._book)
            return {}

    def _write(self) -> None:
        write_whole(self._book, iter([_SEEN.dump_json(self._seen)]))


def as_json(event: Event) -> str:
    """An event as a line."""
    said = {"event": event.what, "path": str(event.path), "document": event.document}
    return json.dumps(said | ({"error": event.why} if event.why else {}), ensure_ascii=False)
