"""A whole library in one file, and back.

The file is a tar archive: the database as it was at one moment, the documents' files, questions and
answers of batches that were ordered in it, what ``gistree watch`` has seen, and at the end a list
with the SHA-256 of each, by which it is checked before anything is put in its place. The index is
not in it: it is derived.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from app.place import Place
from memory.database import explained
from memory.errors import LibraryError
from memory.snapshot import files_of, snapshot

_DATABASE = "library.db"
_LIST = "gistree-backup.json"
_BESIDE = re.compile(r"watched\.json|batches/[\w-]{1,80}/[\w-][\w.-]{0,80}")
_NAMES = re.compile(
    rf"library\.db|files/[0-9a-f]{{2}}/[0-9a-f]{{64}}[^/\\]{{0,16}}|{_BESIDE.pattern}"
)
_PASSING = (".lock", ".part", ".tmp")
_BLOCK_BYTES = 1 << 20
_TRIES = 5


def backup(place: Place, file: Path) -> int:
    """Writes a library to a file, wholly or not at all; returns how many documents it has.

    Raises:
        LibraryError: the library lies in PostgreSQL, or changes too fast, or cannot be read.
        StorageFull: no room for it.
    """
    if place.url.get_backend_name() != "sqlite":
        raise LibraryError(
            f"{place} lies in PostgreSQL: back its database up with pg_dump, then copy the folder "
            f"{place.files}; gistree check on what was restored says whether both fit"
        )
    if not file.absolute().parent.is_dir():
        raise LibraryError(f"there is no folder {file.absolute().parent}")
    with (
        explained(f"the backup {file}"),
        tempfile.TemporaryDirectory(prefix=".gistree-", dir=file.absolute().parent) as folder,
    ):
        copy, part = Path(folder, _DATABASE), Path(folder, "backup.part")
        for _ in range(_TRIES):
            snapshot(place.url, copy, where=str(place))
            needed = files_of(copy)
            if _write(part, copy, place, needed):
                os.replace(part, file)
                return sum(needed.values())
            copy.unlink()
    raise LibraryError(
        f"files of {place} are gone: either documents are being deleted all the while, or gistree "
        "check will name them"
    )


def _write(part: Path, copy: Path, place: Place, needed: dict[str, bool]) -> bool:
    """Writes the archive; False where a document went after the database was copied."""
    sums: dict[str, str] = {}
    with part.open("wb") as out, tarfile.open(fileobj=out, mode="w") as archive:
        sums[_DATABASE] = _put(archive, copy, _DATABASE)
        for name, whole in sorted(needed.items()):
            try:
                sums[f"files/{name}"] = _put(archive, place.files / name, f"files/{name}")
            except FileNotFoundError:
                if whole:
                    return False
        for path in _beside(place):
            name = path.relative_to(place.folder).as_posix()
            with suppress(FileNotFoundError):  # its batch was deleted meanwhile
                sums[name] = _put(archive, path, name)
        listed = json.dumps({"layout": 1, "sha256": sums}, indent=1).encode()
        member = tarfile.TarInfo(_LIST)
        member.size = len(listed)
        archive.addfile(member, io.BytesIO(listed))
        archive.close()
        out.flush()
        os.fsync(out.fileno())
    return True


def _beside(place: Place) -> list[Path]:
    """Files of the library that neither the database names nor can be made again."""
    found = [place.folder / "watched.json"]
    for parent, _, names in os.walk(place.batches):  # passes over a batch that is deleted meanwhile
        found += [Path(parent, name) for name in names]
    return [
        path
        for path in sorted(found)
        if path.is_file()
        and path.suffix not in _PASSING
        and _BESIDE.fullmatch(path.relative_to(place.folder).as_posix())
    ]


def _put(archive: tarfile.TarFile, path: Path, name: str) -> str:
    """Takes a file in as long as it is now: answers may be written behind that meanwhile."""
    with path.open("rb") as file:
        member = tarfile.TarInfo(name)
        member.size = left = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256()
        while block := file.read(min(left, _BLOCK_BYTES)):
            digest.update(block)
            left -= len(block)
        file.seek(0)
        archive.addfile(member, file)
    return digest.hexdigest()


def restore(file: Path, folder: Path) -> int:
    """Makes a library from a backup, where there is none; returns how many documents it has.

    Args:
        file: What ``backup`` wrote.
        folder: Of the new library; it must not be there, or be empty.

    Raises:
        LibraryError: the file is no backup, or not whole, or the folder holds something.
        StorageFull: no room for it.
    """
    folder = folder.expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LibraryError(f"{folder} is not empty; restore into a folder that is not there yet")
    with explained(f"the library {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            with tarfile.open(file, mode="r:") as archive:
                _unpack(archive, fresh, file)
            needed = files_of(fresh / _DATABASE)
            for name, whole in needed.items():
                if whole and not (fresh / "files" / name).is_file():
                    raise LibraryError(f"{file} lacks the file {name} of a document")
            if folder.exists():
                folder.rmdir()
            os.replace(fresh, folder)
        except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
            raise LibraryError(f"{file} is no whole backup of a library: {error}") from error
        except FileNotFoundError as error:
            raise LibraryError(f"there is no file {error.filename}") from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return sum(needed.values())


def _unpack(archive: tarfile.TarFile, fresh: Path, file: Path) -> None:
    """Unpacks what a backup may hold and nothing else, and compares it with the list."""
    sums: dict[str, str] = {}
    listed: dict[str, str] | None = None
    for member in archive:
        data = archive.extractfile(member) if member.isreg() else None
        if data is None or not (member.name == _LIST or _NAMES.fullmatch(member.name)):
            raise LibraryError(f"{file} is no backup of a library: it holds {member.name[:80]!r}")
        if member.name == _LIST:
            listed = _listed(data.read(), file)
            continue
        target = fresh / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        sums[member.name] = _take(data, target)
    if listed is None:
        raise LibraryError(f"{file} is cut off: its list is missing; make the backup again")
    for name in sorted(listed.keys() | sums.keys()):
        if listed.get(name) != sums.get(name):
            raise LibraryError(f"{file} is damaged: {name} is not as it was written")


def _listed(data: bytes, file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(data)["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LibraryError(f"{file} is damaged: its list cannot be read ({error})") from error


def _take(data: IO[bytes], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("xb") as out:
        while block := data.read(_BLOCK_BYTES):
            digest.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()
