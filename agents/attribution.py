"""Which citations the answer hangs on: each is left out, and the model says what that costs.

After ContextCite (arXiv:2409.00729), at its cheapest: no surrogate model over many ablations, but
one ablation for each sentence that words and meaning have cited already.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.answer import Citation, Claim
from serving.errors import BadReply, ContextOverflow, ModelUnavailable
from serving.model import LanguageModel, Message, Usage

log = logging.getLogger(__name__)

_OTHER = "NOT FOUND"  # choosing takes two texts at least


@dataclass(frozen=True, slots=True)
class Falls:
    """What leaving each citation out did.

    Attributes:
        falls: By how much the natural logarithm of the answer's probability fell, one for each
            citation; None where its words were not in the prompt as they stand in the source.
        usage: Tokens of all calls.
        why: Why nothing could be measured, in words; empty where it could.
    """

    falls: tuple[float | None, ...]
    usage: Usage
    why: str = ""


def leave_out(
    model: LanguageModel,
    prompt: Callable[[str], Sequence[Message]],
    passages: str,
    answer: str,
    citations: Sequence[Citation],
) -> Falls:
    """How far the answer's probability falls without each cited sentence.

    It takes a call for the whole and one for each citation.

    Args:
        model: Who wrote the answer.
        prompt: Passages to the prompt that the answer came from.
        passages: As they stood in it.
        answer: As it was written.
        citations: What to leave out, one at a time.
    """
    if not getattr(model, "scores_text", False):
        return Falls((), Usage(), f"{model.name} does not say how likely a given text is")
    usage = Usage()

    def score(text: str) -> float:
        nonlocal usage
        choice = model.choose(prompt(text), [answer, _OTHER])
        usage += choice.usage
        return choice.log_probs[0]

    try:
        whole = score(passages)
        falls = tuple(
            whole - score(passages.replace(citation.quote, "…"))
            if citation.quote in passages
            else None
            for citation in citations
        )
    except (BadReply, ContextOverflow, ModelUnavailable) as error:
        return Falls((), usage, str(error))
    log.info("leave_out citations=%d calls=%d", len(citations), usage.calls)
    return Falls(falls, usage)


def weed(
    citations: Sequence[Citation], claims: Sequence[Claim], falls: Sequence[float | None]
) -> tuple[tuple[Citation, ...], tuple[Claim, ...]]:
    """The citations that the answer hangs on, the most telling first.

    A citation goes where leaving it out costs nothing, unless a sentence of the answer would be
    left with none; what was not measured stays, behind what costs something.

    Args:
        citations: As the answer has them.
        claims: Its sentences, with positions in the citations.
        falls: As ``Falls.falls``, one for each citation.
    """

    def telling(i: int) -> tuple[float, int]:
        fall = falls[i]
        return (0.0 if fall is None else -fall, i)

    kept: set[int] = set()
    for claim in claims:
        ranked = sorted(claim.citations, key=telling)
        kept.update(ranked[:1])
        kept.update(i for i in ranked if (fall := falls[i]) is None or fall > 0.0)
    order = sorted(kept, key=telling)
    places = {old: new for new, old in enumerate(order)}
    return (
        tuple(citations[i] for i in order),
        tuple(
            Claim(c.span, tuple(places[i] for i in sorted(c.citations, key=telling) if i in places))
            for c in claims
        ),
    )
