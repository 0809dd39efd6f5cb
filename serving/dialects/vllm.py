"""vLLM's OpenAI-compatible server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from serving.dialects import NO_THINKING, as_json
from serving.model import Choice, Message, Usage
from serving.next_tokens import Tokens, are_short, beginnings, log_probs, wanted
from serving.wire import Wire

_OPTIONS_KEPT = 512


class VllmDialect:
    """Counts by the model's tokenizer; scores the options' own tokens."""

    name = "vllm"
    scores_text = True
    # vLLM takes the penalty of the model's own settings, which makes it shy of quoting.
    chat_options: Mapping[str, Any] = {**NO_THINKING, "repetition_penalty": 1.0}

    def __init__(self, wire: Wire, *, model: str, entry: Mapping[str, Any]) -> None:
        self._wire = wire
        self._model = model
        self._window = int(entry.get("max_model_len") or 0)
        self._options: dict[str, Tokens] = {}
        self._tells_next = True

    def window(self) -> int:
        """As the server lists it."""
        return self._window

    def count_tokens(self, text: str) -> int:
        """By the model's tokenizer."""
        return len(self._ids(text))

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """By the model's template and tokenizer."""
        return len(self._prompt(messages))

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """The log-probability of each option's tokens behind the prompt.

        For short options the server is asked what may come next, after the prompt and after each
        beginning of an option: the prompt comes from its prefix cache. Long ones, and servers that
        do not know that request, get the prompt with each option behind it, echoed with all
        log-probabilities, which vLLM computes without its cache.
        """
        start = self._prompt(messages)
        ids = [self._option(option) for option in options]
        found = self._next_tokens(start, ids) if self._tells_next else None
        return found or self._echoed(start, ids)

    def _next_tokens(self, start: list[int], options: Sequence[Tokens]) -> Choice | None:
        """Scores from what may come next; None where that cannot be asked."""
        if not are_short(options):
            return None
        asked, tokens = beginnings(options), wanted(options)
        known: dict[Tokens, dict[int, float]] = {}
        usage = Usage()
        # The prompt alone goes first, so that it is in the cache for the others.
        for some in filter(None, (asked[:1], asked[1:])):
            reply = self._wire.post(
                "/v1/completions",
                {
                    "model": self._model,
                    "prompt": [[*start, *beginning] for beginning in some],
                    "max_tokens": 1,
                    "temperature": 0.0,
                    "logprobs": 1,
                    "logprob_token_ids": tokens,
                    "return_tokens_as_token_ids": True,
                },
            )
            for choice in reply["choices"]:
                known[some[choice["index"]]] = _by_token(choice)
            usage += _usage(reply)
            if not known[()].keys() >= set(tokens):  # an older vLLM overlooks the wish
                self._tells_next = False
                return None
        return Choice(log_probs(known, options), replace(usage, calls=1))

    def _echoed(self, start: list[int], options: Sequence[Tokens]) -> Choice:
        prompts = [[*start, *option] for option in options]
        reply = self._wire.post(
            "/v1/completions",
            {
                "model": self._model,
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
        return Choice(tuple(scores), _usage(reply))

    def _option(self, text: str) -> Tokens:
        if text not in self._options:
            if len(self._options) >= _OPTIONS_KEPT:
                self._options.clear()
            self._options[text] = tuple(self._ids(text))
        return self._options[text]

    def _ids(self, text: str) -> list[int]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        ids: list[int] = self._wire.post("/tokenize", body)["tokens"]
        return ids

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        body = {
            "model": self._model,
            "messages": as_json(messages),
            "add_generation_prompt": True,
            **NO_THINKING,
        }
        ids: list[int] = self._wire.post("/tokenize", body)["tokens"]
        return ids


def _by_token(choice: Mapping[str, Any]) -> dict[int, float]:
    """Log-probabilities of what may come next, by token."""
    likely = (choice["logprobs"].get("top_logprobs") or [{}])[0]
    return {int(name.removeprefix("token_id:")): float(value) for name, value in likely.items()}


def _usage(reply: Mapping[str, Any]) -> Usage:
    spent = reply.get("usage") or {}
    details = spent.get("prompt_tokens_details") or {}
    return Usage(
        int(spent.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0),
        int(spent.get("completion_tokens") or 0),
        1,
    )
