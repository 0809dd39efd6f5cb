"""Files that lie elsewhere, by URL (s3://, https:// …): fetched, sent, listed through fsspec."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving.errors import GistreeError, MissingExtra

_OF_THE_EXTRA = ("s3", "s3a", "http", "https")
"""Kinds of addresses whose drivers the extra "remote" brings."""


class NotReached(GistreeError):
    """A file elsewhere cannot be had, or not be written."""


def is_url(name: str) -> bool:
    """Whether a name is an address rather than a path of this machine."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def fetch(url: str, target: Path) -> None:
    """Copies a file here: it appears under its name only when it is whole.

    Raises:
        NotReached: there is none, or it cannot be had.
        MissingExtra: the driver for such addresses is not installed.
    """
    part = target.with_name(f".{target.name}.part")
    with _explained(url):
        system, path = _opened(url)
        try:
            system.get_file(path, str(part))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def send(source: Path, url: str) -> None:
    """Copies a file there, in place of what stood there; raises as ``fetch`` does."""
    with _explained(url):
        system, path = _opened(url)
        system.put_file(str(source), path)


def is_there(url: str) -> bool:
    """Whether there is such a file; raises as ``fetch`` does."""
    with _explained(url):
        system, path = _opened(url)
        return bool(system.exists(path))


def files_under(url: str) -> list[str]:
    """Addresses of all files under a folder, sorted, but for hidden ones; of a file, its own.

    Raises:
        NotReached: there is nothing, or it cannot be had.
        MissingExtra: the driver for such addresses is not installed.
    """
    with _explained(url):
        system, path = _opened(url)
        if not system.isdir(path):
            return [url]
        below = (str(found).removeprefix(str(path)).lstrip("/") for found in system.find(path))
        names = sorted(name for name in below if not re.search(r"(^|/)\.", name))
        if not names:
            raise FileNotFoundError
        return [f"{url.rstrip('/')}/{name}" for name in names]


def name_of(url: str) -> str:
    """What a file is called: the last part of its address, without a query."""
    return re.split(r"[?#]", url)[0].rstrip("/").rpartition("/")[2]


def shown(url: str) -> str:
    """An address without what opens it: user, password, signed query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


def _opened(url: str) -> tuple[Any, str]:
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    return system, path


@contextmanager
def _explained(url: str) -> Iterator[None]:
    kind = url.partition("://")[0]
    try:
        yield
    except FileNotFoundError as error:
        raise NotReached(f"there is no file {shown(url)}") from error
    except ImportError as error:
        if kind in _OF_THE_EXTRA or error.name == "fsspec":
            raise MissingExtra(f"{kind}://", "remote") from error
        raise NotReached(f"{shown(url)} cannot be reached: {error}") from error
    except Exception as error:  # each driver has errors of its own, with nothing in common
        why = str(error) or type(error).__name__
        raise NotReached(f"{shown(url)} cannot be reached: {why}") from error
