"""Pages of PDF files as pictures, drawn by a child process that is started when it is needed."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory import errors
from memory.errors import DocumentError, UnreadableDocument
from memory.parse_process import environment
from memory.pdf_boxes import Box

_START = (
    "import json,sys;setup=json.loads(sys.stdin.readline());sys.path[:]=setup.pop('sys_path');"
    "from memory.page_worker import main;main(setup)"
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page that was drawn.

    Attributes:
        png: The picture, base64.
        width: Of the page in points.
        height: Likewise.
        boxes: For each quote that was asked for, the boxes of its lines on the page, in points.
    """

    png: str
    width: float
    height: float
    boxes: tuple[tuple[Box, ...], ...]


class PageProcess:
    """Draws pages, one at a time. Safe for many threads; close it at the end.

    Attributes:
        timeout_s: A page that takes longer is given up, and the worker with it.
        memory_bytes: What the worker's data may take.
    """

    def __init__(self, *, timeout_s: float = 20.0, memory_bytes: int = 1536 * 2**20) -> None:
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Ends the worker."""
        with self._lock:
            self._end()

    def draw(
        self,
        path: Path,
        page_index: int,
        *,
        width_pixels: int,
        quotes: Sequence[tuple[str, int]] = (),
        password: str | None = None,
    ) -> Drawn:
        """A page as a picture, and where quotes stand on it.

        Args:
            path: The PDF file.
            page_index: Physical index from 0.
            width_pixels: Of the picture; less where the page is very long. 0 for no picture.
            quotes: Each with its occurrence, as ``memory.pdf_boxes.boxes`` takes them.
            password: Of an encrypted file.

        Raises:
            DocumentError: the file cannot be opened, or this page cannot be drawn.
        """
        request = {
            "path": str(path.absolute()),
            "page": page_index,
            "pixels": width_pixels,
            "quotes": [list(quote) for quote in quotes],
            "password": password,
        }
        with self._lock:
            line = self._ask(json.dumps(request).encode() + b"\n")
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise UnreadableDocument(
                f"page {page_index + 1} cannot be drawn: it takes too long, or breaks what draws "
                "it; read its text instead, or open the file in a PDF viewer"
            ) from error
        if "error" in reply:
            raise _error(reply)
        return Drawn(
            png=reply["png"],
            width=reply["size"][0],
            height=reply["size"][1],
            boxes=tuple(tuple(Box(*box) for box in each) for each in reply["boxes"]),
        )

    def _ask(self, line: bytes) -> bytes:
        """The worker's reply; nothing where it died or had to be ended."""
        worker = self._alive()
        assert worker.stdin is not None
        assert worker.stdout is not None
        watch = threading.Timer(self.timeout_s, worker.kill)
        watch.daemon = True
        watch.start()
        try:
            worker.stdin.write(line)
            worker.stdin.flush()
            reply = worker.stdout.readline()
        except BrokenPipeError:
            reply = b""
        finally:
            watch.cancel()
        if not reply.endswith(b"\n"):
            self._end()
            return b""
        return reply

    def _alive(self) -> subprocess.Popen[bytes]:
        if self._worker is not None and self._worker.poll() is None:
            return self._worker
        self._end()
        self._folder = tempfile.TemporaryDirectory(prefix="gistree-", ignore_cleanup_errors=True)
        self._worker = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=environment(self._folder.name),
            start_new_session=True,
        )
        setup = {
            "sys_path": [os.path.abspath(entry) for entry in sys.path],
            "folder": self._folder.name,
            "memory_bytes": self.memory_bytes,
        }
        assert self._worker.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; the reading of its reply sees that
            self._worker.stdin.write(json.dumps(setup).encode() + b"\n")
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            for pipe in (self._worker.stdin, self._worker.stdout):
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()
            self._worker.wait()
            self._worker = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _error(reply: dict[str, Any]) -> DocumentError:
    kind = getattr(errors, reply["error"], UnreadableDocument)
    is_ours = isinstance(kind, type) and issubclass(kind, DocumentError)
    message = reply["message"] or "this page needs more memory than it may have"
    return (kind if is_ours else UnreadableDocument)(message)
