"""Is there any evidence for a question at all? A score to refuse by, and its limits."""

from collections.abc import Sequence

from retrieval.sentence_scores import score_sentences
from retrieval.types import Embedder

OFF_TOPIC = 0.5
"""Held out (``bench/refusal.py``), 1 of 111 questions that a document answers scores lower; of
those meant for another document all on meetings do, a third on stories, none on contracts."""


def support(
    question: str, passages: Sequence[str], embedder: Embedder, *, max_embedded: int = 128
) -> float:
    """How well the best sentence of the passages found fits the question; about 0 to 1.5.

    The largest sum of a sentence's cosine and half its share of the question's words.

    What it can tell, measured with the default embedder: whether the documents speak of the
    matter at all (stories, encyclopedias and papers asked a question meant for another one of
    their kind). What it cannot: whether they answer it. A clause that a contract does not have
    scores as high as one that it has. That takes a model that reads.

    Args:
        question: The user's question.
        passages: Texts of the passages found, the best first.
        embedder: The library's embedder.
        max_embedded: Most sentences that are embedded.
    """
    found = score_sentences(question, passages, embedder, max_embedded=max_embedded)
    return float((found.meaning + 0.5 * found.words).max(initial=0.0))
