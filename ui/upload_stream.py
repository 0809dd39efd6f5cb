"""Uploads go to the disk while they come, not into the server's memory.

Streamlit keeps what is uploaded in memory, whole. This layer before it writes each file to the
library's folder and lets Streamlit see a receipt of a hundred bytes in its place.
"""

import logging
from collections.abc import Callable
from typing import Any

from anyio import to_thread
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.uploads import Incoming, Uploads

log = logging.getLogger(__name__)

_PATH = "/_stcore/upload_file/"


class UploadsToDisk:
    """The layer, an ASGI application around another one."""

    def __init__(self, app: ASGIApp, uploads: Callable[[], Uploads]) -> None:
        """Wraps an application.

        Args:
            app: Streamlit's.
            uploads: Gives the folder of uploads.
        """
        self._app = app
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http" and scope["method"] == "PUT" and _PATH in scope["path"]:
            receive = _Receipts(scope, receive, self._uploads)
        await self._app(scope, receive, send)


class _Receipts:
    """What Streamlit reads in place of the body. It asks only once it has let the request in."""

    def __init__(self, scope: Scope, receive: Receive, uploads: Callable[[], Uploads]) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        _, options = parse_options_header(headers.get(b"content-type", b""))
        self._boundary = options.get(b"boundary", b"")
        self._receive = receive
        self._uploads = uploads
        self._given = False

    async def __call__(self) -> Message:
        if self._given or not self._boundary:
            return await self._receive()
        self._given = True
        body = _Body(self._boundary, self._uploads)
        more = True
        try:
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    body.abandon()
                    return message
                more = message.get("more_body", False)
                await to_thread.run_sync(body.write, message.get("body", b""))
            return {"type": "http.request", "body": body.instead(), "more_body": False}
        except BaseException:
            body.abandon()
            raise


class _Body:
    """Reads a multipart body with one file in it, and writes that to the disk."""

    def __init__(self, boundary: bytes, uploads: Callable[[], Uploads]) -> None:
        self._boundary = boundary
        self._uploads = uploads
        self._headers: list[tuple[bytes, bytes]] = []
        self._field = b""
        self._value = b""
        self._file: Incoming | None = None
        self._written: list[tuple[list[tuple[bytes, bytes]], bytes]] = []
        callbacks: dict[str, Callable[..., Any]] = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_field,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self._end,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def write(self, block: bytes) -> None:
        """Takes in a block of the body."""
        self._parser.write(block)

    def instead(self) -> bytes:
        """A body with a receipt in place of the file."""
        parts = [
            b"--%s\r\n%s\r\n%s\r\n"
            % (
                self._boundary,
                b"".join(b"%s: %s\r\n" % header for header in headers),
                receipt,
            )
            for headers, receipt in self._written
        ]
        return b"".join(parts) + b"--%s--\r\n" % self._boundary

    def abandon(self) -> None:
        """Removes a file that has not wholly come."""
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def _begin(self) -> None:
        self._headers = []

    def _add_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers.append((self._field, self._value))
        self._field, self._value = b"", b""

    def _open(self) -> None:
        self._file = self._uploads().begin("")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])

    def _end(self) -> None:
        if self._file is not None:
            upload = self._file.end()
            self._file = None
            self._written.append((self._headers, upload.receipt()))
            log.info("upload bytes=%d", upload.size_bytes)
