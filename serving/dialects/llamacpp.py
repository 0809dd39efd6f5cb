"""llama.cpp's own server."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from serving.dialects import NO_THINKING, as_json
from serving.errors import BadReply
from serving.model import Choice, Message, Usage
from serving.wire import Wire

log = logging.getLogger(__name__)

_FIRST_LOOK = 200
"""Likeliest tokens asked for at once: the letters and short words of a choice are among them."""

_ALL = 10_000_000


class LlamaCppDialect:
    """Counts by the model's tokenizer; scores the options' own tokens."""

    name = "llamacpp"
    scores_text = True
    chat_options: Mapping[str, Any] = NO_THINKING

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def window(self) -> int:
        """What the server was started with."""
        settings = self._wire.get("/props").get("default_generation_settings") or {}
        return int(settings.get("n_ctx") or 0)

    def count_tokens(self, text: str) -> int:
        """By the model's tokenizer."""
        return len(self._ids(text, special=False))

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """By the model's template and tokenizer."""
        return len(self._prompt(messages))

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """One request where all options are single tokens, else about one for each longer one."""
        prompt = self._prompt(messages)
        pieces = [self._pieces(option) for option in options]
        usage = Usage()
        likely: dict[int, float] = {}
        if any(len(option) == 1 for option in pieces):
            likely, usage = self._look(prompt, _FIRST_LOOK)
        scores = []
        for option in pieces:
            token = option[0][0]
            if len(option) == 1 and token in likely:
                scores.append(likely[token])
                continue
            score, spent = self._score(prompt, option)
            scores.append(score)
            usage += spent
        return Choice(tuple(scores), usage)

    def _score(
        self, prompt: Sequence[int], option: Sequence[tuple[int, bool]]
    ) -> tuple[float, Usage]:
        """Log-probability that exactly these tokens follow.

        A grammar of one path of tokens makes the model write them, and the reply says how likely
        each was without the grammar. A grammar cannot pass through the middle of a character, and
        older servers know no tokens in grammars: there it goes token by token.
        """
        ids = [token for token, _ in option]
        if all(whole for _, whole in option):
            try:
                path = " ".join(f"<[{token}]>" for token in ids)
                reply = self._complete(
                    prompt, n_predict=len(ids), n_probs=1, grammar=f"root ::= {path}"
                )
                steps = reply["completion_probabilities"]
                if [step["id"] for step in steps] == ids:
                    return sum(float(step["logprob"]) for step in steps), _usage(reply)
            except BadReply:
                log.debug("this server takes no tokens in grammars")
        score, usage = 0.0, Usage()
        for place, token in enumerate(ids):
            every, spent = self._look([*prompt, *ids[:place]], _ALL)
            score += every[token]
            usage += spent
        return score, usage

    def _look(self, prompt: Sequence[int], num_probs: int) -> tuple[dict[int, float], Usage]:
        """Log-probabilities of the likeliest next tokens.

        Whatever the likeliest is, a letter is written: of a token that is half a character the
        server would report nothing.
        """
        letter = self._ids("a", special=False)[-1]
        reply = self._complete(prompt, n_predict=1, n_probs=num_probs, logit_bias=[[letter, 1e6]])
        listed = reply["completion_probabilities"][0]["top_logprobs"]
        return {token["id"]: float(token["logprob"]) for token in listed}, _usage(reply)

    def _complete(self, prompt: Sequence[int], **options: Any) -> Any:
        body = {"prompt": list(prompt), "temperature": 0.0, "cache_prompt": True, **options}
        return self._wire.post("/completion", body)

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        body = {"messages": as_json(messages), **self.chat_options}
        text = self._wire.post("/apply-template", body)["prompt"]
        return self._ids(text, special=True)

    def _ids(self, text: str, *, special: bool) -> list[int]:
        body = {"content": text, "add_special": special, "parse_special": special}
        ids: list[int] = self._wire.post("/tokenize", body)["tokens"]
        return ids

    def _pieces(self, text: str) -> list[tuple[int, bool]]:
        """Tokens of a text, and whether each is whole characters."""
        body = {"content": text, "add_special": False, "parse_special": False, "with_pieces": True}
        tokens = self._wire.post("/tokenize", body)["tokens"]
        return [(int(token["id"]), isinstance(token["piece"], str)) for token in tokens]


def _usage(reply: Mapping[str, Any]) -> Usage:
    timings = reply["timings"]
    cached = int(timings.get("cache_n") or 0)
    return Usage(int(timings["prompt_n"]) + cached, cached, int(timings["predicted_n"]), 1)
