"""Any OpenAI-compatible server: vLLM, llama.cpp, and others in part.

What chat completions do not offer (token counts, log-probabilities of given texts) is asked by the
server's own ways: vLLM's and llama.cpp's are known; what is different elsewhere each method says.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from serving.errors import BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain
from serving.wire import Refused, Wire

Dialect = Literal["vllm", "llamacpp", "plain"]

_USUAL_WINDOW = 8_192
_BYTES_PER_TOKEN = 2.5  # a text has fewer tokens than this makes of it, in any script measured
_MESSAGE_TOKENS = 16
_LETTERS = "ABCDEFGHIJKLMNOPQRST"


class OpenAIServer:
    """A model behind HTTP."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "",
        api_key: str = "",
        ability: Ability = "large",
        context_window: int = 0,
        timeout_s: float = 600.0,
    ) -> None:
        """Connects.

        Args:
            base_url: With or without "/v1".
            model: Name of the model; the first that the server lists where not given.
            api_key: Where the server wants one.
            ability: What the model can be trusted with.
            context_window: Tokens, where the server does not say; 8,192 if nobody does.
            timeout_s: Longest silence.

        Raises:
            ModelUnavailable: no server answers there.
            ModelNotFound: it does not have that model; the message lists those that it has.
        """
        root = base_url.rstrip("/").removesuffix("/v1")
        self._wire = Wire(root, api_key=api_key, timeout_s=timeout_s)
        try:
            listed = self._listed()
            names = [str(entry.get("id", "")) for entry in listed]
            if model and names and model not in names:
                raise ModelNotFound(f"{root} has no model {model!r}; it has: {', '.join(names)}")
            if not model and not names:
                raise ModelNotFound(f"{root} lists no model; name one: {root}#NAME")
            self.name = model or names[0]
            entry = next((e for e in listed if e.get("id") == self.name), {})
            self.dialect: Dialect = _dialect(entry)
            self.context_window = context_window or self._window(entry)
        except BaseException:
            self._wire.close()
            raise
        self.ability: Ability = ability
        self.count_tokens = lru_cache(maxsize=8_192)(self._count_tokens)

    def close(self) -> None:
        """Closes the connections."""
        self._wire.close()

    def _listed(self) -> list[dict[str, Any]]:
        reply = self._ask("GET", "/v1/models")
        data = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(data, list):
            raise BadReply(f"{self._wire.base_url}/v1/models does not list models; got {reply!r}")
        return data

    def _window(self, entry: Mapping[str, Any]) -> int:
        if entry.get("max_model_len"):
            return int(entry["max_model_len"])
        if self.dialect == "llamacpp":
            return int(self._ask("GET", "/props")["default_generation_settings"]["n_ctx"])
        return _USUAL_WINDOW

    def _ask(self, method: Literal["GET", "POST"], path: str, body: Any = None) -> Any:
        try:
            return self._wire.get(path) if method == "GET" else self._wire.post(path, body)
        except Refused as refused:
            raise self._explained(refused) from refused

    def _explained(self, refused: Refused) -> Exception:
        root = self._wire.base_url
        if refused.status in (401, 403):
            return ModelUnavailable(f"{root} refuses the key; set GISTREE_API_KEY to a right one")
        if refused.status == 404:
            return ModelNotFound(f"{root} does not know that: {refused.text[:300]}")
        if any(word in refused.text for word in ("context", "maximum", "exceed")):
            return ContextOverflow(0, getattr(self, "context_window", 0))
        return BadReply(f"{root} refuses the request: {refused}")

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The reply, piece by piece; closing the generator stops the server's work on it."""
        self._check_fits(messages, max_tokens)
        body: dict[str, Any] = {
            "model": self.name,
            "messages": _plain(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if stop:
            body["stop"] = list(stop)
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": dict(schema), "strict": True},
            }
        pieces: list[str] = []
        usage: Mapping[str, Any] = {}
        finish: Literal["stop", "length"] = "stop"
        try:
            for event in self._wire.events("/v1/chat/completions", body):
                if "error" in event:
                    raise ModelUnavailable(f"{self._wire.base_url} failed: {event['error']}")
                usage = event.get("usage") or usage
                for choice in event.get("choices") or ():
                    piece = (choice.get("delta") or {}).get("content") or ""
                    if choice.get("finish_reason") == "length":
                        finish = "length"
                    if piece:
                        pieces.append(piece)
                        yield piece
        except Refused as refused:
            raise self._explained(refused) from refused
        return Completion("".join(pieces), _usage(usage), finish)

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
        """How likely each text is as the reply.

        With vLLM and llama.cpp: the log-probability of the option's own tokens. Elsewhere the
        options are shown with letters and the letters' log-probabilities are taken, which says
        what the model would pick, not how likely it would write the text; at most 20 options.

        Raises:
            ValueError: fewer than two options, or an empty one.
            BadReply: the server gives no log-probabilities.
        """
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        self._check_fits(messages, max(map(self.count_tokens, options)))
        match self.dialect:
            case "llamacpp":
                return self._choose_llamacpp(messages, options)
            case "vllm":
                return self._choose_vllm(messages, options)
            case "plain":
                return self._choose_letters(messages, options)

    def _choose_llamacpp(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """Walks the options' tokens as a tree: a beginning that several share is asked once."""
        prompt = self._ask("POST", "/apply-template", {"messages": _plain(messages)})["prompt"]
        start = self._ids(prompt, special=True)
        paths = [tuple(self._ids(option, special=False)) for option in options]
        known: dict[tuple[int, ...], dict[int, float]] = {}
        usage = Usage()
        for prefix in sorted({path[:i] for path in paths for i in range(len(path))}):
            wanted = {
                path[len(prefix)]
                for path in paths
                if path[: len(prefix)] == prefix and len(path) > len(prefix)
            }
            for num_probs in (200, 1_000_000):  # the rare option is worth a second, whole look
                reply = self._ask(
                    "POST",
                    "/completion",
                    {
                        "prompt": [*start, *prefix],
                        "n_predict": 1,
                        "n_probs": num_probs,
                        "temperature": 0.0,
                        "cache_prompt": True,
                    },
                )
                usage += Usage(len(start) + len(prefix), int(reply["timings"]["cache_n"]), 1, 1)
                first = reply["completion_probabilities"][0]
                known[prefix] = {t["id"]: float(t["logprob"]) for t in first["top_logprobs"]}
                if wanted <= known[prefix].keys():
                    break
        return Choice(
            tuple(
                sum(known[path[:i]].get(path[i], -math.inf) for i in range(len(path)))
                for path in paths
            ),
            usage,
        )

    def _ids(self, text: str, *, special: bool) -> list[int]:
        body = {"content": text, "add_special": special, "parse_special": special}
        tokens: list[int] = self._ask("POST", "/tokenize", body)["tokens"]
        return tokens

    def _choose_vllm(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        body = {"model": self.name, "messages": _plain(messages), "add_generation_prompt": True}
        start: list[int] = self._ask("POST", "/tokenize", body)["tokens"]
        prompts = []
        for option in options:
            plain = {"model": self.name, "prompt": option, "add_special_tokens": False}
            prompts.append([*start, *self._ask("POST", "/tokenize", plain)["tokens"]])
        reply = self._ask(
            "POST",
            "/v1/completions",
            {
                "model": self.name,
                "prompt": prompts,
                "max_tokens": 1,
                "temperature": 0.0,
                "echo": True,
                "logprobs": 0,
            },
        )
        scores = [0.0] * len(options)
        for choice in reply["choices"]:
            place = choice["index"]
            values = choice["logprobs"]["token_logprobs"][len(start) : len(prompts[place])]
            scores[place] = sum(values)
        return Choice(tuple(scores), _usage(reply.get("usage") or {}))

    def _choose_letters(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        if len(options) > len(_LETTERS):
            raise ValueError(f"this server chooses among at most {len(_LETTERS)} options")
        listed = "\n".join(f"{letter}) {o}" for letter, o in zip(_LETTERS, options, strict=False))
        asked = [
            *messages[:-1],
            Message("user", f"{messages[-1].content}\n\n{listed}\nReply with one letter."),
        ]
        body = {
            "model": self.name,
            "messages": _plain(asked),
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": 20,
        }
        reply = self._ask("POST", "/v1/chat/completions", body)
        try:
            top = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        except (KeyError, IndexError, TypeError) as error:
            raise BadReply(
                f"{self._wire.base_url} gives no log-probabilities, which choosing needs"
            ) from error
        seen = {str(t["token"]).strip(): float(t["logprob"]) for t in reversed(top)}
        scores = tuple(seen.get(_LETTERS[i], -math.inf) for i in range(len(options)))
        return Choice(scores, _usage(reply.get("usage") or {}))

    def _count_tokens(self, text: str) -> int:
        """Tokens of a text; where the server cannot count, more than there can be."""
        if not text:
            return 0
        match self.dialect:
            case "llamacpp":
                return len(self._ids(text, special=False))
            case "vllm":
                body = {"model": self.name, "prompt": text, "add_special_tokens": False}
                return int(self._ask("POST", "/tokenize", body)["count"])
            case "plain":
                return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of the whole prompt, chat template included."""
        match self.dialect:
            case "llamacpp":
                body = {"messages": _plain(messages)}
                return len(
                    self._ids(self._ask("POST", "/apply-template", body)["prompt"], special=True)
                )
            case "vllm":
                listed = {"model": self.name, "messages": _plain(messages)}
                return int(self._ask("POST", "/tokenize", listed)["count"])
            case "plain":
                return sum(self.count_tokens(m.content) + _MESSAGE_TOKENS for m in messages)

    def _check_fits(self, messages: Sequence[Message], reply_tokens: int) -> None:
        tokens = self.count_prompt(messages)
        if tokens + reply_tokens > self.context_window:
            raise ContextOverflow(tokens + reply_tokens, self.context_window)


def _plain(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": m.role, "content": m.content} for m in messages]


def _dialect(entry: Mapping[str, Any]) -> Dialect:
    match entry.get("owned_by"):
        case "vllm":
            return "vllm"
        case "llamacpp":
            return "llamacpp"
        case _:
            return "plain"


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0),
        int(usage.get("completion_tokens") or 0),
        1,
    )
