"""Any OpenAI-compatible server: vLLM, llama.cpp, and others in part."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any, Literal

from serving.dialects import Dialect, as_json
from serving.dialects.llamacpp import LlamaCppDialect
from serving.dialects.plain import PlainDialect
from serving.dialects.vllm import VllmDialect
from serving.errors import BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain
from serving.wire import Wire

__all__ = ["OpenAIServer"]

_USUAL_WINDOW = 8_192
_COUNTS_KEPT = 16_384


class OpenAIServer:
    """A model behind HTTP.

    Attributes:
        dialect: What kind of server it is; ``dialect.scores_text`` says what ``choose`` gives.
        num_at_once: Requests that keep it busy; it batches what comes together.
    """

    num_at_once: int = 8

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "",
        api_key: str = "",
        ability: Ability = "large",
        context_window: int = 0,
        timeout_s: float = 600.0,
        max_tries: int = 5,
    ) -> None:
        """Connects.

        Args:
            base_url: With or without "/v1".
            model: Name of the model; the first that the server lists where not given.
            api_key: Where the server wants one.
            ability: What the model can be trusted with.
            context_window: Tokens; where the server says a smaller number, that holds. 8,192 where
                nobody says any.
            timeout_s: Longest silence.
            max_tries: How often a request is sent while the server is away, busy or failing.

        Raises:
            ModelUnavailable: no server answers there, or it refuses the key.
            ModelNotFound: it does not have that model; the message lists those that it has.
        """
        root = base_url.rstrip("/").removesuffix("/v1")
        self._wire = Wire(root, api_key=api_key, timeout_s=timeout_s, max_tries=max_tries)
        try:
            entry = self._entry(model)
            self.name: str = model or str(entry["id"])
            self.dialect: Dialect = _dialect(self._wire, self.name, entry)
            windows = [w for w in (context_window, self.dialect.window()) if w > 0]
            self.context_window: int = min(windows, default=_USUAL_WINDOW)
        except BaseException:
            self._wire.close()
            raise
        self._model = self.name
        self.ability: Ability = ability
        self._count = lru_cache(maxsize=_COUNTS_KEPT)(self.dialect.count_tokens)

    @property
    def scores_text(self) -> bool:
        """Whether ``choose`` says how likely the texts are, not letters that stand for them."""
        return self.dialect.scores_text

    @property
    def overloaded_at(self) -> float:
        """When the server last said that it is too busy, ``time.monotonic()``; 0.0 for never."""
        return self._wire.overloaded_at

    def close(self) -> None:
        """Closes the connections."""
        self._wire.close()

    def _entry(self, model: str) -> Mapping[str, Any]:
        """What the server lists of the model, or of its first one."""
        reply = self._wire.get("/v1/models")
        listed = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(listed, list) or not all(isinstance(e, dict) for e in listed):
            raise BadReply(f"{self._wire.base_url}/v1/models does not list models; got {reply!r}")
        entries = {str(entry.get("id", "")): entry for entry in listed}
        if model and entries and model not in entries:
            raise ModelNotFound(
                f"{self._wire.base_url} has no model {model!r}; it has: {', '.join(entries)}"
            )
        if not entries:
            raise ModelNotFound(f"{self._wire.base_url} has no model; load one there")
        return entries[model] if model else next(iter(entries.values()))

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The reply, piece by piece; closing the generator stops the server's work on it.

        Where the server does not report tokens, the usage is counted here.
        """
        prompt_tokens = self._check_fits(messages, max_tokens)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": as_json(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.dialect.chat_options,
        }
        if stop:
            body["stop"] = list(stop)
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": dict(schema), "strict": True},
            }
        pieces: list[str] = []
        reported: Mapping[str, Any] = {}
        finish: Literal["stop", "length"] = "stop"
        thought = False
        with closing(self._wire.events("/v1/chat/completions", body)) as events:
            for event in events:
                if not isinstance(event, dict) or event.get("error"):
                    raise ModelUnavailable(f"{self._wire.base_url} failed: {event}")
                reported = event.get("usage") or reported
                for choice in event.get("choices") or ():
                    delta = choice.get("delta") or {}
                    thought = thought or bool(
                        delta.get("reasoning_content") or delta.get("reasoning")
                    )
                    if choice.get("finish_reason") == "length":
                        finish = "length"
                    piece = delta.get("content") or ""
                    if piece:
                        pieces.append(piece)
                        yield piece
        text = "".join(pieces)
        if thought and not text:
            raise BadReply(
                f"{self.name} spent all {max_tokens:,} tokens of its reply on thinking; "
                "turn its thinking off, or take a model that answers at once"
            )
        usage = _usage(reported) or Usage(prompt_tokens, 0, self.count_tokens(text), 1)
        return Completion(text, usage, finish)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The reply as a whole."""
        return drain(
            self.stream(
                messages, max_tokens=max_tokens, temperature=temperature, stop=stop, schema=schema
            )
        )

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """How likely each text is as the reply, in the way of ``dialect.scores_text``.

        Raises:
            ValueError: fewer than two options, or an empty one.
            BadReply: the server gives no log-probabilities.
        """
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        self._check_fits(messages, max(map(self.count_tokens, options)))
        return self.dialect.choose(messages, options)

    def count_tokens(self, text: str) -> int:
        """Tokens of a text; where the server cannot count, more than there can be."""
        return self._count(text) if text else 0

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of the whole prompt, chat template included; same bound."""
        return self.dialect.count_prompt(messages)

    def _check_fits(self, messages: Sequence[Message], reply_tokens: int) -> int:
        tokens = self.count_prompt(messages)
        if tokens + reply_tokens > self.context_window:
            raise ContextOverflow(tokens, self.context_window, reply_tokens)
        return tokens


def _dialect(wire: Wire, model: str, entry: Mapping[str, Any]) -> Dialect:
    match entry.get("owned_by"):
        case "vllm":
            return VllmDialect(wire, model=model, entry=entry)
        case "llamacpp":
            return LlamaCppDialect(wire)
        case _:
            return PlainDialect(wire, model=model)


def _usage(reported: Mapping[str, Any]) -> Usage | None:
    if not reported:
        return None
    details = reported.get("prompt_tokens_details") or {}
    return Usage(
        int(reported.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0),
        int(reported.get("completion_tokens") or 0),
        1,
    )
