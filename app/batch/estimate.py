"""What a batch will take, before it begins."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.batch.questions import Row
from app.batch.report import Report

_REPLY_TOKENS = 40
_TEMPLATE_TOKENS = 120
_VALUE_TOKENS = 400  # an answer and its quotes, of which a value is read off
_SAMPLE_ROWS = 5  # answered rows from which the others can be told


@dataclass(frozen=True, slots=True)
class Estimate:
    """Sizes of a batch.

    Attributes:
        rows: Rows that are to be asked.
        calls: Calls of the model.
        prompt_tokens: Tokens of all prompts, cached ones included.
        completion_tokens: Tokens of all replies, about.
        hours: One row at a time, on this machine; None where nobody measured its pace.
        sample: Answered rows from which it was reckoned; 0 where there were too few, so that it
            was reckoned from sizes, as if every prompt were full and nothing cached.
    """

    rows: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    hours: float | None
    sample: int


@dataclass(frozen=True, slots=True)
class Means:
    """What a row takes.

    Attributes:
        budget_tokens: Of document text in a prompt, for rows that name none of their own.
        calls: Of the model that read document text.
        values: Further calls, which read a value off an answer.
        prompt_tokens_per_s: That the model reads here; 0 where unknown.
        completion_tokens_per_s: That it writes.
    """

    budget_tokens: int
    calls: int
    values: int
    prompt_tokens_per_s: float
    completion_tokens_per_s: float


def estimate(rows: Iterable[Row], means: Means, answered: Report) -> Estimate:
    """What rows will take: as those took that are answered, or from sizes where those are few.

    Args:
        rows: Rows that are to be asked.
        means: What a row takes with a reader that fills its budget once a call.
        answered: What the answered rows came to.
    """
    count = prompt = 0
    for row in rows:
        count += 1
        a_call = (row.budget_tokens or means.budget_tokens) + _TEMPLATE_TOKENS
        prompt += means.calls * (a_call + len(row.question) // 4) + means.values * _VALUE_TOKENS
    sample = answered.answered + answered.refused
    if sample >= _SAMPLE_ROWS:
        share = count / sample
        return Estimate(
            rows=count,
            calls=round(answered.calls * share),
            prompt_tokens=round(answered.prompt_tokens * share),
            completion_tokens=round(answered.completion_tokens * share),
            hours=answered.seconds * share / 3_600,
            sample=sample,
        )
    replies = count * _REPLY_TOKENS
    seconds = None
    if means.prompt_tokens_per_s and means.completion_tokens_per_s:
        seconds = prompt / means.prompt_tokens_per_s + replies / means.completion_tokens_per_s
    return Estimate(
        rows=count,
        calls=count * (means.calls + means.values),
        prompt_tokens=prompt,
        completion_tokens=replies,
        hours=None if seconds is None else seconds / 3_600,
        sample=0,
    )
