"""One ranking out of several: weighted reciprocal ranks, the weights read off the query."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

_QUOTED = re.compile(r"[\"“„«「『]\s*\w[^\"”“»」』]*[\"”“»」』]")
_QUESTION = re.compile(
    r"[?？؟]|^\s*(?:who|what|when|where|why|how|which|whose|whom|is|are|do|does|did|was|were|can|could|should|would)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b(?=\w*\d)\w+\b|\b[A-Z]{2,}\b|\b\w+[_./]\w+\b")


@dataclass(frozen=True, slots=True)
class Fusion:
    """Reciprocal-rank fusion (Cormack et al., SIGIR 2009) of dense and word search.

    A passage's score is the sum over both rankings of ``weight / (constant + rank)``, rank from 1.
    The dense ranking weighs 1. The word ranking weighs ``words`` and more for every sign that the
    very words matter: equal weights help headings and hurt questions.

    Attributes:
        constant: The larger, the less the first ranks stand out.
        words: Weight of the word ranking for a plain question.
        no_question: Added where the query is keywords or a heading, not a question.
        quoted: Added where something stands in quotation marks.
        code: Added where it holds a number, an acronym or an identifier.
        rare: Added in proportion to the share of its words that few passages hold.
        most: The word ranking never weighs more.
    """

    constant: float = 60.0
    words: float = 0.4
    no_question: float = 0.4
    quoted: float = 0.6
    code: float = 0.3
    rare: float = 0.4
    most: float = 1.5

    def word_weight(self, query: str, *, rare_share: float = 0.0) -> float:
        """How much the word ranking counts beside the dense one.

        Args:
            query: As it was asked.
            rare_share: Share of its words that few passages hold, 0 to 1.
        """
        weight = self.words + self.rare * rare_share
        if not _QUESTION.search(query):
            weight += self.no_question
        if _QUOTED.search(query):
            weight += self.quoted
        if _CODE.search(query):
            weight += self.code
        return min(weight, self.most)


def fuse(
    rankings: Sequence[Sequence[int]], weights: Sequence[float], *, constant: float = 60.0
) -> list[tuple[int, float]]:
    """Items of several rankings in one, best first; ties keep the order of the first ranking.

    Args:
        rankings: Item numbers, best first.
        weights: One per ranking.
        constant: As in ``Fusion``.

    Raises:
        ValueError: not one weight per ranking.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, 1):
            scores[item] += weight / (constant + rank)
    return sorted(scores.items(), key=lambda each: -each[1])
