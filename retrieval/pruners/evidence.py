"""Pruning by the evidence at hand: embeddings, words, neighbours. Needs no model of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.document import Span
from retrieval.query import core
from retrieval.sentence_scores import Scores, SentenceScores, score_sentences
from retrieval.types import Embedder

__all__ = ["EvidencePruner"]


@dataclass(frozen=True, slots=True)
class EvidencePruner:
    """Keeps the sentences that come near the best one (the idea of Provence, arXiv:2501.16214).

    A sentence's score is the weighted sum of its own nearness and words, of its passage's, and of
    the passage's place among the passages; a good neighbour lifts it, since the sentence that
    answers often leans on the one before. What scores less than ``threshold`` times the best is
    dropped. How much that takes, and what it costs, differs with the documents: see
    ``bench/results/evidence-*.md``.

    Attributes:
        threshold: 0 keeps everything, 1 the best sentence alone.
        floor: Where not even the best sentence's own evidence reaches it, nothing is kept.
        meaning: Weight of a sentence's cosine.
        words: Weight of a sentence's share of the question's words.
        passage_meaning: Weight of the passage's cosine.
        passage_words: Weight of the passage's share of the question's words.
        place: Weight of the passage's place; falls from this to nothing.
        lift: Share of the better neighbour's evidence that a sentence gets.
        max_embedded: Most sentences that are embedded for one question.
    """

    threshold: float = 0.35
    floor: float = 0.1
    meaning: float = 0.3
    words: float = 0.2
    passage_meaning: float = 0.5
    passage_words: float = 0.3
    place: float = 0.2
    lift: float = 0.5
    max_embedded: int = 256

    def prune(
        self, question: str, passages: Sequence[str], *, headers: Sequence[str], embedder: Embedder
    ) -> list[list[Span]]:
        """What to keep of each passage; see ``retrieval.types.Pruner``. The best come first."""
        found = score_sentences(core(question), passages, embedder, max_embedded=self.max_embedded)
        kept: list[list[Span]] = [[] for _ in passages]
        if not found.spans:
            return kept
        own = self.meaning * found.meaning + self.words * found.words
        if float(own.max()) < self.floor * (self.meaning + self.words):
            return kept
        scores = self._scores(own, found)
        least = self.threshold * float(scores.max())
        for span, number, score in zip(found.spans, found.passage, scores, strict=True):
            if score >= least:
                _append(kept[number], span, passages[number])
        return kept

    def _scores(self, own: Scores, found: SentenceScores) -> Scores:
        """Scores of all sentences, [num_sentences]."""
        same = found.passage[1:] == found.passage[:-1]
        neighbour = np.zeros(len(own))
        neighbour[1:] = np.where(same, own[:-1], 0.0)
        neighbour[:-1] = np.maximum(neighbour[:-1], np.where(same, own[1:], 0.0))
        return (
            own
            + self.lift * np.maximum(neighbour, 0.0)
            + self.passage_meaning * found.passage_meaning
            + self.passage_words * found.passage_words
            + self.place / (1 + found.passage / 8)
        )


def _append(kept: list[Span], span: Span, text: str) -> None:
    """Adds a span, in one with the last where only white space parts them."""
    if kept and not text[kept[-1].end : span.start].strip():
        kept[-1] = Span(kept[-1].start, span.end)
    else:
        kept.append(span)
