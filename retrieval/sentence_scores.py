"""How well each sentence of the passages found fits a question: the ground for pruning."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.document import Span
from memory.sentences import sentences
from retrieval.types import Embedder
from retrieval.words import query_words

Scores = NDArray[np.float64]

_ENDINGS = ("ing", "ies", "ed", "es", "ly", "s")


@dataclass(frozen=True, slots=True)
class SentenceScores:
    """The sentences of several passages with two kinds of evidence.

    Attributes:
        spans: Places within the passage's text.
        passage: Which passage each stands in, [num_sentences].
        meaning: Cosine of its embedding and the question's, [num_sentences].
        words: Share of the question's words that it holds, the rare ones weighing more, 0 to 1.
        passage_meaning: The same cosine of the passage as a whole.
        passage_words: The same share of the passage as a whole.
    """

    spans: tuple[Span, ...]
    passage: NDArray[np.int64]
    meaning: Scores
    words: Scores
    passage_meaning: Scores
    passage_words: Scores


def score_sentences(
    question: str, passages: Sequence[str], embedder: Embedder, *, max_embedded: int
) -> SentenceScores:
    """The sentences of the passages, scored.

    Args:
        question: The user's question.
        passages: Texts, the most promising first.
        embedder: Costs about 10 ms a sentence on a processor core.
        max_embedded: Most sentences that are embedded, those of the first passages; the rest count
            as neither near nor far.
    """
    spans = [sentences(text) for text in passages]
    places = [(p, span) for p, found in enumerate(spans) for span in found]
    passage = np.array([p for p, _ in places], np.int64)
    texts = [span.of(passages[p]) for p, span in places]
    meaning, passage_meaning = _meaning(question, texts[:max_embedded], passage, embedder)
    words, passage_words = _words(question, texts, passage)
    return SentenceScores(
        tuple(span for _, span in places), passage, meaning, words, passage_meaning, passage_words
    )


def _meaning(
    question: str, texts: Sequence[str], passage: NDArray[np.int64], embedder: Embedder
) -> tuple[Scores, Scores]:
    """Cosines of sentences and of their passages, each [len(passage)]."""
    meaning = np.zeros(len(passage))
    whole = np.zeros(len(passage))
    if not texts:
        return meaning, whole
    query = embedder.embed_query(question)
    vectors = embedder.embed(texts)
    read = len(texts)
    meaning[:read] = vectors @ query
    for number in np.unique(passage[:read]):
        mine = passage[:read] == number
        together = vectors[mine].sum(0)
        whole[:read][mine] = together @ query / max(float(np.linalg.norm(together)), 1e-9)
    meaning[read:] = np.median(meaning[:read])
    whole[read:] = np.median(whole[:read])
    return meaning, whole


def _words(
    question: str, texts: Sequence[str], passage: NDArray[np.int64]
) -> tuple[Scores, Scores]:
    """Shares of the question's words in sentences and in their passages, each [len(texts)]."""
    wanted = _roots(question)
    rows = [_roots(text) for text in texts]
    counts = Counter(word for row in rows for word in row)
    weight = {word: math.log(1 + len(rows) / max(counts[word], 1)) for word in wanted}
    total = sum(weight.values())
    if not total:
        return np.zeros(len(texts)), np.zeros(len(texts))
    together: dict[int, set[str]] = {}
    for number, row in zip(passage.tolist(), rows, strict=True):
        together.setdefault(number, set()).update(row & wanted)

    def share(row: set[str]) -> float:
        return sum(weight[word] for word in row & wanted) / total

    whole = {number: share(row) for number, row in together.items()}
    return np.array([share(row) for row in rows]), np.array([whole[p] for p in passage.tolist()])


def _roots(text: str) -> set[str]:
    return {_root(word) for word in query_words(text)}


def _root(word: str) -> str:
    """A word without its common English ending; crude, but the same on both sides."""
    if word.isascii() and len(word) > 4:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)]
    return word
