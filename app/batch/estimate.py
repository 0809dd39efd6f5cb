"""What a batch will take, before it begins."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.batch.questions import Row

_REPLY_TOKENS = 40
_TEMPLATE_TOKENS = 120


@dataclass(frozen=True, slots=True)
class Estimate:
    """Sizes of a batch.

    Attributes:
        rows: Rows that are to be asked.
        calls: Calls of the model.
        prompt_tokens: Tokens of all prompts, as if nothing were cached: an upper bound.
        completion_tokens: Tokens of all replies, about.
        hours: At the model's pace on this machine, one row at a time; None where nobody measured
            it.
    """

    rows: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    hours: float | None


def estimate(
    rows: Iterable[Row], *, budget_tokens: int, calls_a_row: int, tokens_per_s: float
) -> Estimate:
    """What rows will take with a reader that fills its budget once a call.

    Args:
        rows: Rows that are to be asked.
        budget_tokens: Of rows that have none of their own.
        calls_a_row: Calls of the model for one row.
        tokens_per_s: Prompt tokens that the model reads a second; 0 where unknown.
    """
    count = prompt = 0
    for row in rows:
        count += 1
        prompt += (row.budget_tokens or budget_tokens) + _TEMPLATE_TOKENS + len(row.question) // 4
    hours = prompt / tokens_per_s / 3_600 if tokens_per_s else None
    return Estimate(count, count * calls_a_row, prompt, count * _REPLY_TOKENS, hours)
