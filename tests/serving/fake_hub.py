"""A small HTTP server that serves files as the hub does, and may break off."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeHub:
    """Serves ``files`` by path.

    Attributes:
        break_after: Bytes after which each transfer breaks off, while ``breaks`` lasts.
        declares: Whether the SHA-256 of large files is declared.
        sent: Bytes sent in all.
        ranges: What was asked for, of each transfer.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after = 0
        self.breaks = 0
        self.declares = True
        self.takes_ranges = True
        self.sent = 0
        self.ranges: list[str] = []
        self.moved: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(hub) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                if self.path in hub.moved:
                    self.send_response(307)
                    self.send_header("Location", hub.moved[self.path])
                    self.end_headers()
                    return
                data = hub.files.get(self.path)
                self.send_response(404 if data is None else 302)
                if data is not None:
                    self.send_header("Location", f"{hub.url}{self.path}?store")
                    if hub.declares:
                        name = hashlib.sha256(data).hexdigest()
                        self.send_header("X-Linked-Etag", f'"{name}"')
                self.end_headers()

            def do_GET(self) -> None:
                path = self.path.removesuffix("?store")
                if path in hub.moved or path == self.path:  # the hub itself sends on
                    self.send_response(302)
                    self.send_header("Location", f"{hub.moved.get(path, path)}?store")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                data = hub.files.get(path)
                if data is None:
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                asked = self.headers.get("Range", "")
                hub.ranges.append(asked)
                start = 0
                if asked and hub.takes_ranges:
                    start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(data):
                    self.send_response(416)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206 if asked and hub.takes_ranges else 200)
                if asked and hub.takes_ranges:
                    self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                body = data[start:]
                if hub.breaks:
                    hub.breaks -= 1
                    body = body[: hub.break_after]
                    self.close_connection = True
                hub.sent += len(body)
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
