"""Any other OpenAI-compatible server: chat completions and nothing else is certain."""

from collections.abc import Mapping, Sequence
from typing import Any

from serving.dialects import as_json
from serving.errors import BadReply
from serving.lettered import letter_scores, lettered
from serving.model import Choice, Message, Usage
from serving.token_estimate import estimate_tokens
from serving.wire import Wire

_MESSAGE_TOKENS = 16


class PlainDialect:
    """Estimates tokens from above; scores letters that stand for the options."""

    name = "plain"
    scores_text = False
    chat_options: Mapping[str, Any] = {}

    def __init__(self, wire: Wire, *, model: str) -> None:
        self._wire = wire
        self._model = model

    def window(self) -> int:
        """Unknown."""
        return 0

    def count_tokens(self, text: str) -> int:
        """An estimate that is meant to be too high."""
        return estimate_tokens(text)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """The same estimate, with room for the template."""
        return sum(self.count_tokens(m.content) + _MESSAGE_TOKENS for m in messages)

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """Shows the options with letters and takes the letters' log-probabilities.

        Raises:
            ValueError: more than 20 options.
            BadReply: the server gives no log-probabilities.
        """
        asked = lettered(messages, options)
        body = {
            "model": self._model,
            "messages": as_json(asked),
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": 20,
        }
        reply = self._wire.post("/v1/chat/completions", body)
        try:
            top = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        except (KeyError, IndexError, TypeError) as error:
            raise BadReply(
                f"{self._wire.base_url} gives no log-probabilities, which choosing needs"
            ) from error
        scores = letter_scores(top, len(options))
        spent = reply.get("usage") or {}
        return Choice(
            scores,
            Usage(
                int(spent.get("prompt_tokens") or self.count_prompt(asked)),
                0,
                int(spent.get("completion_tokens") or 1),
                1,
            ),
        )
