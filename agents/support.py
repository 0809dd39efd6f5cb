"""Which sentences of the source bear out a sentence of an answer.

The model says what it found; the program finds where. So a citation is always a place in the
source, and a sentence that no place bears out is known to be unsupported.

What this can tell is that the words of a sentence, or its meaning, stand in the source: not that
they answer the question. Right words under the wrong question pass (``bench/support.py``).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.numerals import in_figures, plain_figures
from memory.document import Span
from retrieval.types import Embedder
from retrieval.words import index_words

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# What a model numbers or points with, which says nothing of the document: "2)", "[3]", "(page 7)".
_MARK = re.compile(
    r"^\s*\(?\d{1,3}[.)]\s+(?=\S)"
    r"|\[\d+(?:\s*[,;–-]\s*\d+)*\]"
    r"|\((?:pp?\.|pages?|parts?)\s*\d+(?:\s*[,;–-]\s*\d+)*\)",
    re.IGNORECASE,
)
_BARE = frozenset({"yes", "no", "true", "false"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that the model had before it."""

    document_id: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Supporter:
    """Scores evidence sentences for the sentences of an answer.

    The score is a weighted mean of three shares: of the claim's words (the rarer the heavier) that
    the sentence has, of the question's words likewise, and the cosine of the embeddings of
    question and claim against the sentence. Where a claim is only a name, the question's words
    tell its mentions apart.

    Attributes:
        claim_weight: Weight of the claim's words.
        question_weight: Weight of the question's words.
        meaning_weight: Weight of the embedding.
        needed_words: Share of the claim's words that the best sentences must have between them.
        needed_meaning: Cosine that stands in for shared words.
        max_each: Most sentences cited for one claim.
        candidates: How many sentences are embedded: those that share the most words.
    """

    claim_weight: float = 0.5
    question_weight: float = 0.2
    meaning_weight: float = 0.3
    needed_words: float = 0.5
    needed_meaning: float = 0.6
    max_each: int = 2
    candidates: int = 48

    def support(
        self, question: str, claim: str, evidence: Sequence[Evidence], embedder: Embedder
    ) -> list[tuple[Evidence, float]]:
        """The sentences that bear a claim out, the best first; empty where none does.

        A claim with a number that stands in none of the evidence, in figures or in words, is never
        borne out. A bare yes or no says of the evidence what the question does.
        """
        if not evidence:
            return []
        claim = _MARK.sub(" ", claim)
        texts = [in_figures(sentence.text) for sentence in evidence]
        claimed, asked = _words(claim), _words(question)
        own = (claimed - asked) or claimed
        if claimed and claimed <= _BARE:
            own = asked
        numbers = set(_NUMBER.findall(plain_figures(claim)))
        if numbers - set(_NUMBER.findall(" ".join([*texts, in_figures(question)]))):
            return []
        originals = " ".join([*(sentence.text for sentence in evidence), question])
        spelt_out = numbers - set(_NUMBER.findall(plain_figures(originals)))
        rows = [set(index_words(text)) for text in texts]
        weights = _weights(own | asked, rows)
        lexical = np.array(
            [
                self.claim_weight * _share(own, row, weights)
                + self.question_weight * _share(asked, row, weights)
                for row in rows
            ]
        )
        keep = np.argsort(-lexical, kind="stable")[: self.candidates]
        evidence, rows = [evidence[i] for i in keep], [rows[i] for i in keep]
        vectors = embedder.embed([sentence.text for sentence in evidence])
        meaning = np.clip(vectors @ embedder.embed_query(f"{question} {claim}"), 0.0, 1.0)
        score = lexical[keep] + self.meaning_weight * meaning
        order = sorted(range(len(rows)), key=lambda i: -score[i])
        best = order[0]
        chosen = [best]
        covered = own & rows[best]
        for i in order[1:]:
            if len(chosen) == self.max_each or covered == own:
                break
            if (own & rows[i]) - covered and score[i] >= 0.6 * score[best]:
                chosen.append(i)
                covered |= own & rows[i]
        words_enough = _share(own, covered, weights) >= self.needed_words
        # "Three" stands in many a text: meaning alone makes no 3 of it.
        if not words_enough and (spelt_out or meaning[best] < self.needed_meaning):
            return []
        return [(evidence[i], float(score[i])) for i in chosen]


def _words(text: str) -> set[str]:
    return set(index_words(in_figures(text)))


def _weights(wanted: set[str], rows: Sequence[set[str]]) -> dict[str, float]:
    """The rarer a word the heavier it is; one that no sentence has is as heavy as the rarest."""
    counts = Counter(word for row in rows for word in row)
    rarest = min(counts.values(), default=1)
    return {word: math.log(1 + len(rows) / counts.get(word, rarest)) for word in wanted}


def _share(wanted: set[str], row: set[str], weights: dict[str, float]) -> float:
    """Share of the wanted words, by weight."""
    total = sum(weights[word] for word in wanted)
    return sum(weights[word] for word in wanted & row) / total if total else 0.0
