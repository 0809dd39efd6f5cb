"""JSON over HTTP with patience: retries, streams, and failures in words."""

import json
import logging
import random
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from serving.errors import BadReply, ModelUnavailable
from serving.refusals import explained

log = logging.getLogger(__name__)

_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_OVERLOADED = frozenset({429, 503})
_LONGEST_WAIT_S = 30.0
_CONNECT_S = 5.0
_TRIES_TO_CONNECT = 3


@dataclass(frozen=True, slots=True)
class Wire:
    """One server. Every method may be called from several threads.

    Errors of every request: ``ModelUnavailable`` where the server does not answer, fails or hangs
    up, after all tries; ``BadReply`` where what it sends is no JSON; and what its refusal means.

    Attributes:
        base_url: Without a slash at the end.
        api_key: Sent as a bearer token where not empty.
        timeout_s: Longest silence between two bytes of a reply; reading a long prompt is silent.
        max_tries: How often a request is sent while the server is busy or failing; at most three
            times while nobody is there at all, since then a person waits for nothing.
        first_wait_s: Before the second try; doubled for each further one, with jitter.
    """

    base_url: str
    api_key: str = ""
    timeout_s: float = 600.0
    max_tries: int = 5
    first_wait_s: float = 0.5
    _client: httpx.Client = field(init=False)
    _overloads: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=1))

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ModelUnavailable(f"{self.base_url!r} is no address: {error}") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise ModelUnavailable(f"{self.base_url!r} is no address; write http://HOST:PORT")
        client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else {},
            timeout=httpx.Timeout(self.timeout_s, connect=_CONNECT_S),
            # No proxy stands before this machine's own servers.
            trust_env=url.host not in ("localhost", "127.0.0.1", "::1", "0.0.0.0"),
            limits=httpx.Limits(max_connections=None),  # callers queue at the server, not here
        )
        object.__setattr__(self, "_client", client)

    @property
    def overloaded_at(self) -> float:
        """When the server last said that it is too busy (429, 503), ``time.monotonic()``."""
        return self._overloads[-1]

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return self._json("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply to a JSON body."""
        return self._json("POST", path, body)

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        with self._response(method, path, body) as response:
            try:
                text = response.read()
            except httpx.TransportError as error:
                raise self._hung_up(error) from error
            try:
                return json.loads(text)
            except (ValueError, RecursionError) as error:
                raise BadReply(
                    f"{self.base_url}{path} sent no JSON but: {text[:200]!r}; "
                    "is it an OpenAI-compatible server?"
                ) from error

    def events(self, path: str, body: Mapping[str, Any]) -> Generator[Any, None, None]:
        """The JSON objects of a server-sent event stream, up to its end mark.

        A request is tried again only while nothing has come. Closing the iterator hangs up, which
        tells the server to stop.
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
                        event = json.loads(data)
                    except (ValueError, RecursionError) as error:
                        raise BadReply(
                            f"{self.base_url} sent a broken event: {data[:200]!r}"
                        ) from error
                    yield event
            except httpx.TransportError as error:
                raise self._hung_up(error) from error
        raise ModelUnavailable(f"{self.base_url} ended its reply half way; ask again")

    def _hung_up(self, error: httpx.TransportError) -> ModelUnavailable:
        if isinstance(error, httpx.TimeoutException):
            return ModelUnavailable(
                f"{self.base_url} fell silent for {self.timeout_s:,.0f} s amid its reply"
            )
        return ModelUnavailable(
            f"{self.base_url} hung up in the middle of its reply ({error}); ask again"
        )

    @contextmanager
    def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Iterator[httpx.Response]:
        """An answer below 400, after as many tries as it takes."""
        sent: dict[str, Any] = {}
        if body is not None:
            # Half of a surrogate pair, as odd files and names hold it, is no character.
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            sent = {"content": data, "headers": {"Content-Type": "application/json"}}
        tries = self.max_tries
        for attempt in range(1, tries + 1):
            wait_s = self._wait(attempt)
            try:
                response = self._client.send(
                    self._client.build_request(method, path, **sent), stream=True
                )
            except httpx.ReadTimeout as error:
                # The server has the request and works on it: asking again would double the work.
                raise ModelUnavailable(
                    f"{self.base_url} did not answer within {self.timeout_s:,.0f} s"
                ) from error
            except httpx.TransportError as error:
                problem = f"cannot be reached ({error or type(error).__name__})"
                if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    tries = min(tries, _TRIES_TO_CONNECT)
            else:
                if response.status_code < 400:
                    try:
                        yield response
                    finally:
                        response.close()
                    return
                text = _text(response)
                if response.status_code not in _TRY_AGAIN:
                    raise explained(self.base_url, response.status_code, text)
                if response.status_code in _OVERLOADED:
                    self._overloads.append(time.monotonic())
                problem = f"answers {response.status_code}: {text[:200].strip()}"
                wait_s = _asked_wait(response) or wait_s
            if attempt >= tries:
                break
            log.info("%s %s; trying again in %.1f s", self.base_url, problem, wait_s)
            time.sleep(wait_s)
        raise ModelUnavailable(
            f"the model server {self.base_url} {problem}, {tries} times; "
            "see that it runs, or choose another model: gistree models list"
        )

    def _wait(self, attempt: int) -> float:
        jitter = random.uniform(0.75, 1.25)
        return min(self.first_wait_s * jitter * float(2 ** (attempt - 1)), _LONGEST_WAIT_S)


def _asked_wait(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait, at most half a minute."""
    asked = response.headers.get("retry-after", "").strip()
    return min(float(asked), _LONGEST_WAIT_S) if asked.isdigit() else None


def _text(response: httpx.Response) -> str:
    try:
        return response.read().decode("utf-8", "replace")
    except httpx.TransportError:
        return ""
    finally:
        response.close()
