"""vLLM's OpenAI-compatible server."""

from collections.abc import Mapping, Sequence
from typing import Any

from serving.dialects import NO_THINKING, as_json
from serving.model import Choice, Message, Usage
from serving.wire import Wire


class VllmDialect:
    """Counts by the model's tokenizer; scores the options' own tokens, all in one request."""

    name = "vllm"
    scores_text = True
    # vLLM takes the penalty of the model's own settings, which makes it shy of quoting.
    chat_options: Mapping[str, Any] = {**NO_THINKING, "repetition_penalty": 1.0}

    def __init__(self, wire: Wire, *, model: str, entry: Mapping[str, Any]) -> None:
        self._wire = wire
        self._model = model
        self._window = int(entry.get("max_model_len") or 0)

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
        """The prompt with each option behind it, echoed with the log-probability of each token."""
        start = self._prompt(messages)
        prompts = [[*start, *self._ids(option)] for option in options]
        body = {
            "model": self._model,
            "prompt": prompts,
            "max_tokens": 1,
            "temperature": 0.0,
            "echo": True,
            "logprobs": 0,
        }
        reply = self._wire.post("/v1/completions", body)
        scores = [0.0] * len(options)
        for choice in reply["choices"]:
            place = choice["index"]
            values = choice["logprobs"]["token_logprobs"][len(start) : len(prompts[place])]
            scores[place] = sum(values)
        spent = reply.get("usage") or {}
        return Choice(
            tuple(scores),
            Usage(
                int(spent.get("prompt_tokens") or sum(map(len, prompts))),
                0,  # vLLM computes prompts anew where their log-probabilities are asked for
                int(spent.get("completion_tokens") or 0),
                1,
            ),
        )

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
