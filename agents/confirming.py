"""Whether an answer stands: the model is asked once more, and says yes or no.

That words of an answer stand in the source does not show that they answer the question
(``agents/support.py``). A small model that would rather answer than say "not found" is better at
judging: asked whether the answer is stated, its odds of "yes" part questions that the passages
answer from those that they do not (``bench/confirm.py``). The prompt begins as the answer's does,
so that a prefix cache holds all but its last line.
"""

import logging
import math
from dataclasses import dataclass

from agents.prompting import fenced, render
from serving.errors import BadReply, ContextOverflow
from serving.model import LanguageModel, Usage

log = logging.getLogger(__name__)

_OPTIONS = ("yes", "Yes", "no", "No")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the model said.

    Attributes:
        log_odds: Natural logarithm of the odds of "yes".
        sureness: That, and how well the best citation bears the answer out, in one number.
        least: What it takes.
        usage: Tokens spent on asking.
    """

    log_odds: float
    sureness: float
    least: float
    usage: Usage

    @property
    def stands(self) -> bool:
        """Whether the answer is to be shown."""
        return self.sureness >= self.least


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Asks a small model; a tiny one cannot judge, and a large one says "not found" by itself.

    Attributes:
        support_weight: Weight of the best citation's score beside the log-odds.
        least: Sureness below which an answer is not shown. Weight and bound were set on the tuning
            documents of ``bench/confirm.py``, so that about one right answer of twenty goes.
    """

    support_weight: float = 2.0
    least: float = 2.2

    def confirm(
        self, model: LanguageModel, question: str, passages: str, *, support: float
    ) -> Confirmation | None:
        """Whether the passages answer the question.

        Args:
            model: The one that answered.
            question: As the answer's prompt had it.
            passages: As the answer's prompt had them.
            support: Score of the answer's best citation, 0.0 to 1.0.

        Returns:
            None where the model is not to be asked, or its server gives no log-probabilities.
        """
        if model.ability != "small":
            return None
        messages = render("confirm", passages=fenced(passages), question=question)
        try:
            choice = model.choose(messages, _OPTIONS)
        except (BadReply, ContextOverflow) as error:
            log.info("not confirmed: %s", error)
            return None
        yes, no = (_either(*choice.log_probs[at : at + 2]) for at in (0, 2))
        log_odds = yes - no
        sureness = log_odds + self.support_weight * support
        return Confirmation(log_odds, sureness, self.least, choice.usage)


def _either(a: float, b: float) -> float:
    """Logarithm of the sum of two probabilities, from their logarithms."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high)) if high > -math.inf else high
