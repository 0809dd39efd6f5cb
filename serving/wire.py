"""JSON over HTTP with patience: retries, streams, and failures in words."""

import json
import logging
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from serving.errors import BadReply, ModelUnavailable

log = logging.getLogger(__name__)

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT_S = 30.0


class Refused(Exception):
    """The server understood and refused (a 4xx); the backend says what that means."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status
        self.text = text


@dataclass(frozen=True, slots=True)
class Wire:
    """One server.

    Attributes:
        base_url: Without a slash at the end.
        api_key: Sent as a bearer token where not empty.
        timeout_s: Longest silence between two bytes of a reply; reading a long prompt is silent.
        max_tries: How often a request is sent while the server is away, busy or failing.
        first_wait_s: Before the second try; doubled for each further one, with jitter.
    """

    base_url: str
    api_key: str = ""
    timeout_s: float = 600.0
    max_tries: int = 5
    first_wait_s: float = 0.5
    _client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        client = httpx.Client(
            base_url=self.base_url,
            headers=headers,
            timeout=httpx.Timeout(self.timeout_s, connect=5.0),
            trust_env=not _is_local(self.base_url),  # a proxy cannot reach this machine's servers
        )
        object.__setattr__(self, "_client", client)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def get(self, path: str) -> Any:
        """The JSON at a path.

        Raises:
            Refused: the server refuses; not tried again.
            ModelUnavailable: it does not answer, or fails, after all tries.
            BadReply: what it sends is no JSON.
        """
        return self._json("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply to a JSON body; errors as in ``get``."""
        return self._json("POST", path, body)

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        with self._response(method, path, body) as response:
            text = response.read()
            try:
                return json.loads(text)
            except ValueError as error:
                raise BadReply(
                    f"{self.base_url}{path} sent no JSON but: {text[:200]!r}; "
                    "is it an OpenAI-compatible server?"
                ) from error

    def events(self, path: str, body: Mapping[str, Any]) -> Iterator[Any]:
        """The JSON objects of a server-sent event stream, up to its end mark.

        A request is tried again only while nothing has come. Closing the iterator hangs up, which
        tells the server to stop.

        Raises:
            ModelUnavailable: the stream breaks off before its end mark.
        """
        with self._response("POST", path, body) as response:
            try:
                for line in response.iter_lines():
                    if not line.startswith("data:"):
                        continue
                    data = line[5:].strip()
                    if data == "[DONE]":
                        return
                    try:
                        yield json.loads(data)
                    except ValueError as error:
                        raise BadReply(
                            f"{self.base_url} sent a broken event: {data[:200]!r}"
                        ) from error
            except httpx.TransportError as error:
                raise ModelUnavailable(
                    f"{self.base_url} hung up in the middle of its reply ({error}); ask again"
                ) from error
        raise ModelUnavailable(f"{self.base_url} ended its reply half way; ask again")

    @contextmanager
    def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Iterator[httpx.Response]:
        """An answer below 400, after as many tries as it takes."""
        for attempt in range(1, self.max_tries + 1):
            request = self._client.build_request(method, path, json=body)
            try:
                response = self._client.send(request, stream=True)
            except httpx.TimeoutException as error:
                problem: str = f"did not answer in time ({type(error).__name__})"
                wait_s = self._wait(attempt, None)
            except httpx.TransportError as error:
                problem = f"cannot be reached ({error})"
                wait_s = self._wait(attempt, None)
            else:
                if response.status_code < 400:
                    try:
                        yield response
                    finally:
                        response.close()
                    return
                text = response.read().decode("utf-8", "replace")
                response.close()
                if response.status_code not in _TRY_AGAIN:
                    raise Refused(response.status_code, text)
                problem = f"answers {response.status_code}: {text[:200].strip()}"
                wait_s = self._wait(attempt, response.headers.get("retry-after"))
            if attempt < self.max_tries:
                log.info("%s %s; trying again in %.1f s", self.base_url, problem, wait_s)
                time.sleep(wait_s)
        raise ModelUnavailable(
            f"the model server {self.base_url} {problem}, {self.max_tries} times; "
            "see that it runs, or choose another model: gistree models list"
        )

    def _wait(self, attempt: int, retry_after: str | None) -> float:
        if retry_after and retry_after.strip().isdigit():
            return min(float(retry_after), _LONGEST_WAIT_S)
        jitter = random.uniform(0.75, 1.25)
        return min(self.first_wait_s * jitter * float(2 ** (attempt - 1)), _LONGEST_WAIT_S)


def _is_local(url: str) -> bool:
    return httpx.URL(url).host in ("localhost", "127.0.0.1", "::1", "0.0.0.0")
