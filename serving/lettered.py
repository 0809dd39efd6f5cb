"""Choosing by a letter: the options are listed with letters, and the letters' odds are theirs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from serving.model import Message

LETTERS = "ABCDEFGHIJKLMNOPQRST"


def lettered(messages: Sequence[Message], options: Sequence[str]) -> list[Message]:
    """The prompt with the options listed at its end, and the wish for one letter.

    Raises:
        ValueError: more than 20 options: servers give no more odds than that.
    """
    if len(options) > len(LETTERS):
        raise ValueError(f"this server chooses among at most {len(LETTERS)} options")
    listed = "\n".join(f"{letter}) {o}" for letter, o in zip(LETTERS, options, strict=False))
    asked = f"{messages[-1].content}\n\n{listed}\nReply with one letter."
    return [*messages[:-1], Message("user", asked)]


def letter_scores(top: Sequence[Mapping[str, Any]], num_options: int) -> tuple[float, ...]:
    """Log-probability of each option's letter.

    Args:
        top: The likeliest first tokens, as OpenAI's ``top_logprobs`` lists them.
        num_options: How many letters were shown.
    """
    seen = {str(t["token"]).strip(): float(t["logprob"]) for t in reversed(top)}
    return tuple(seen.get(LETTERS[i], -math.inf) for i in range(num_options))
