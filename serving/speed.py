"""How fast a model reads and writes on this machine."""

import time
from dataclasses import dataclass

from serving.model import LanguageModel, Message

_PROSE = (
    "The harbour lay quiet under the morning fog, and the men of the lifeboat sat along the wall. "
    "Nobody had slept. The schooner had gone down at four, and of her crew of fourteen eleven had "
    "been brought ashore, wet and silent, to the kitchen of the inn, where a fire was lit. "
)


@dataclass(frozen=True, slots=True)
class Pace:
    """Tokens a second."""

    prompt_tokens_per_s: float
    completion_tokens_per_s: float


def measure(model: LanguageModel, *, prompt_tokens: int = 300, reply_tokens: int = 24) -> Pace:
    """Reads a text that is in no cache, and writes a little; takes some seconds.

    Args:
        model: The model to measure.
        prompt_tokens: About how long the text is.
        reply_tokens: Most tokens written.
    """
    start = f"{time.time_ns()} "  # another text each time, so that no prefix cache answers
    repeats = max(1, prompt_tokens // max(model.count_tokens(_PROSE), 1))
    messages = [Message("user", start + _PROSE * repeats + "Tell it again in your own words.")]
    began = time.perf_counter()
    stream = model.stream(messages, max_tokens=reply_tokens)
    first = 0.0
    while True:
        try:
            next(stream)
        except StopIteration as end:
            usage = end.value.usage
            break
        first = first or time.perf_counter()
    ended = time.perf_counter()
    first = first or ended
    computed = usage.prompt_tokens - usage.cached_tokens
    return Pace(
        computed / max(first - began, 1e-6),
        max(usage.completion_tokens - 1, 0) / max(ended - first, 1e-6),
    )
