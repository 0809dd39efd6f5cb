"""One file from the Hugging Face hub, or from a mirror of it: resumable, with its declared hash."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import httpx

from serving.errors import FetchFailed

log = logging.getLogger(__name__)

_CONNECT_S = 4.0
_SILENCE_S = 60.0
_MOST_REDIRECTS = 5
_BREAKS_IN_A_ROW = 3


def from_hub(url: str, part: Path, tell: Callable[[int], None], *, sha256: str) -> str:
    """Brings the file into ``part``, going on where that ends, and returns the hash it must have.

    A connection that breaks is taken up again as long as bytes come.

    Args:
        url: Of the file.
        part: What came so far; may be absent.
        tell: Told the bytes that are there.
        sha256: What the file must have; where empty, the hub is asked what it declares.

    Raises:
        FetchFailed: the hub does not answer, refuses, or declares no hash.
    """
    timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
    with httpx.Client(timeout=timeout, headers={"User-Agent": "gistree"}) as client:
        try:
            wanted = sha256 or _declared_sha256(client, url)
            breaks = 0
            while True:
                before = _size(part)
                try:
                    _go_on(client, url, part, tell)
                    return wanted
                except httpx.TransportError as error:
                    breaks = 0 if _size(part) > before else breaks + 1
                    if breaks == _BREAKS_IN_A_ROW or not _size(part):
                        raise
                    log.info("%s broke off at %d bytes (%s); going on", url, _size(part), error)
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise FetchFailed(f"{url} answers {status} {error.response.reason_phrase}") from error
        except httpx.HTTPError as error:
            raise FetchFailed(
                f"{url} cannot be reached ({error or type(error).__name__})"
            ) from error


def _go_on(client: httpx.Client, url: str, part: Path, tell: Callable[[int], None]) -> None:
    have = _size(part)
    # Compressed in transit, a file's second half could not be asked for.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", url, headers=headers, follow_redirects=True) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # all of it is here; its hash will tell
        response.raise_for_status()
        if not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            have = 0
        with part.open("ab" if have else "wb") as out:
            for block in response.iter_bytes():
                out.write(block)
                have += len(block)
                tell(have)
            out.flush()
            os.fsync(out.fileno())


def _declared_sha256(client: httpx.Client, url: str) -> str:
    """The hub declares a large file's SHA-256 on its way to where the file lies."""
    for _ in range(_MOST_REDIRECTS):
        head = client.head(url)
        declared = head.headers.get("X-Linked-Etag", "").strip('"')
        if len(declared) == 64:
            return str(declared)
        moved = head.headers.get("Location", "")
        if not (head.is_redirect and moved.startswith("/")):  # a renamed repository
            if not head.is_redirect:
                head.raise_for_status()
            break
        url = str(head.url.join(moved))
    raise FetchFailed(f"{url} declares no SHA-256, so it cannot be verified")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
