"""One ranking out of nearness of meaning and shared words, the weights read off the query."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_QUOTED = re.compile(r"[\"“„«「『]\s*\w[^\"”“»」』]*[\"”“»」』]")
_QUESTION = re.compile(
    r"[?？؟]|^\s*(?:who|what|when|where|why|how|which|whose|whom|is|are|do|does|did|was|were|can|could|should|would)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b(?=\w*\d)\w+\b|\b[A-Z]{2,}\b|\b\w+[_./]\w+\b")

Scored = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Adds scores, not ranks, and lets a good passage lift its neighbours.

    A passage's score is its cosine above the worst of the nearest, plus the weighted share of the
    best passage's BM25 score, plus ``lift`` times the better of its two neighbours' scores.
    Measured with ``bench/evidence.py``: reciprocal ranks throw away how much better the first
    passage is, which costs most where the embedder does not know the language.

    Attributes:
        words: Weight of words for a plain question.
        no_question: Added where the query is keywords or a heading, not a question.
        quoted: Added where something stands in quotation marks.
        code: Added where it holds a number, an acronym or an identifier.
        rare: Added in proportion to the share of its words that few passages hold.
        most: Words never weigh more.
        lift: Share of the better neighbour's score that a passage gets.
        stretches: Whether passages count by their surroundings in a document whose best ones stand
            together (``retrieval/stretches.py``).
    """

    words: float = 0.35
    no_question: float = 0.1
    quoted: float = 0.2
    code: float = 0.1
    rare: float = 0.1
    most: float = 0.8
    lift: float = 0.3
    stretches: bool = True

    def word_weight(self, query: str, *, rare_share: float = 0.0) -> float:
        """How much words count beside nearness.

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


def fuse(near: Scored, worded: Scored, *, word_weight: float) -> dict[int, float]:
    """Scores of all items of two rankings, none below 0.

    An item that is not among the nearest counts as near as the last of them.

    Args:
        near: Items with their cosines, best first.
        worded: Items with their BM25 scores, best first.
        word_weight: What the best of ``worded`` gets for its words.
    """
    floor = near[-1][1] if near else 0.0
    scores = {item: score - floor for item, score in near}
    best = worded[0][1] if worded else 0.0
    for item, score in worded:
        scores[item] = scores.get(item, 0.0) + word_weight * (score / best if best > 0 else 0.0)
    return scores


def lifted(
    scores: Mapping[int, float], neighbours: Mapping[int, Collection[int]], *, lift: float
) -> list[tuple[int, float]]:
    """Items with their scores after their neighbours' lift, best first; ties by number.

    Args:
        scores: As ``fuse`` gives them; an item without one has 0.
        neighbours: Neighbours of each item that is to be ranked.
        lift: Share of the best neighbour's score that is added.
    """
    ranked = [
        (
            item,
            scores.get(item, 0.0) + lift * max((scores.get(n, 0.0) for n in beside), default=0.0),
        )
        for item, beside in neighbours.items()
    ]
    return sorted(ranked, key=lambda each: (-each[1], each[0]))
