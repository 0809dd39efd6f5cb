"""A small HTTP server that answers as told, for faults that real servers show rarely."""

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One answer; ``cut`` hangs up before the announced end."""

    body: Any = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False

    def bytes(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeServer:
    """Answers each path with its answers in turn, the last one again and again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = defaultdict(list)
        self.requests: list[Request] = []
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

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def say(self, path: str, *answers: Any) -> None:
        self.answers[path] = [a if isinstance(a, Answer) else Answer(a) for a in answers]

    def _handler(fake) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                fake.requests.append(
                    Request(
                        self.command,
                        self.path,
                        {k.lower(): v for k, v in self.headers.items()},
                        json.loads(raw) if raw else None,
                    )
                )
                turn = fake.answers[self.path]
                answer = (turn.pop(0) if len(turn) > 1 else turn[0]) if turn else Answer("", 404)
                data = answer.bytes()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + (100 if answer.cut else 0)))
                self.end_headers()
                if self.command != "HEAD":
                    with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked is gone
                        self.wfile.write(data)
                if answer.cut:
                    self.wfile.flush()
                    self.close_connection = True

            do_GET = do_POST = do_HEAD = _answer

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def events(*pieces: str, usage: Any = None, finish: str = "stop", end: bool = True) -> str:
    """A reply as a server-sent event stream."""
    said: list[Any] = [{"choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
    said.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        said.append({"choices": [], "usage": usage})
    return sse(said, end=end)


def sse(said: Sequence[Any], *, end: bool = True) -> str:
    lines = [f"data: {json.dumps(event)}\n\n" for event in said]
    return "".join(lines) + ("data: [DONE]\n\n" if end else "")
