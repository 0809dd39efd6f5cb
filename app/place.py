"""Where a library lies: a folder with everything in it, or a database and a folder beside it."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from sqlalchemy import URL, make_url

from memory.database import explained, sqlite_url
from memory.errors import LibraryError

_DATABASE = "library.db"


@dataclass(frozen=True, slots=True)
class Place:
    """A library's whereabouts.

    Attributes:
        url: Of the database.
        folder: Holds copies of the files and what is derived (indexes).
        read_only: Whether nothing may be changed.
    """

    url: URL
    folder: Path
    read_only: bool

    @property
    def files(self) -> Path:
        """Folder of the copies."""
        return self.folder / "files"

    @property
    def index(self) -> Path:
        """Folder of what is derived; it may be deleted at any time."""
        return self.folder / "index"

    @property
    def batches(self) -> Path:
        """Folder of the files of batches."""
        return self.folder / "batches"

    @property
    def address(self) -> str:
        """What opens the library again, in another process too; it may hold a password."""
        if (
            self.url.get_backend_name() == "sqlite"
            and Path(self.url.database or "").name == _DATABASE
        ):
            return str(self.folder.absolute())
        return self.url.render_as_string(hide_password=False)

    def __str__(self) -> str:
        if self.url.get_backend_name() == "sqlite":
            return f"the library {self.folder}"
        return f"the library {self.url.render_as_string(hide_password=True)}"


def locate_library(place: str | Path, *, read_only: bool) -> Place:
    """Finds a library, making its folder where there is none.

    Args:
        place: A folder, or a SQLAlchemy URL such as postgresql://host/name.
        read_only: Change nothing.

    Raises:
        LibraryError: there is none and it cannot be made, or it is a file.
    """
    if isinstance(place, str) and re.match(r"[a-z0-9+]+://", place):
        url = make_url(place)
        if url.get_backend_name() == "sqlite":
            if not url.database:
                raise LibraryError("a library needs a file; give a folder instead of sqlite://")
            return _in_folder(Path(url.database).parent, Path(url.database), read_only)
        name = hashlib.sha256(url.render_as_string().encode()).hexdigest()[:16]
        folder = platformdirs.user_data_path("gistree") / "servers" / name
        folder.mkdir(parents=True, exist_ok=True)
        return Place(url, folder, read_only)
    folder = Path(place).expanduser()
    return _in_folder(folder, folder / _DATABASE, read_only)


def _in_folder(folder: Path, database: Path, read_only: bool) -> Place:
    if folder.exists() and not folder.is_dir():
        raise LibraryError(f"{folder} is a file; a library is a folder")
    if read_only and not database.exists():
        raise LibraryError(f"there is no library in {folder}")
    if not read_only:
        with explained(f"the library {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
    if database.exists() and not (os.access(folder, os.W_OK) and os.access(database, os.W_OK)):
        read_only = True
    return Place(sqlite_url(database, read_only=read_only), folder, read_only)
