"""Shortening without a model: the leading sentence and the most central ones."""

import re
from collections import Counter

from memory.sentences import sentences
from memory.wordcount import count_words

_TERM = re.compile(r"[^\W\d_]{4,}|\d+|[\u3040-\u30ff\u3400-\u9fff]{2}")


def terms(text: str) -> list[str]:
    """What a text speaks of: its longer words and its numbers, folded; of Han and kana, pairs."""
    return [term.casefold() for term in _TERM.findall(text)]


def extract(text: str, max_words: int) -> str:
    """Whole sentences of a text in its order, about ``max_words`` words, at least one sentence.

    A sentence is central if it holds what the text speaks of most.
    """
    spans = sentences(text)
    if not spans:
        return ""
    counts = Counter(terms(text))
    scores = []
    for span in spans:
        own = set(terms(span.of(text)))
        scores.append(sum(counts[term] for term in own) / (len(own) + 3) if own else 0.0)
    chosen, held = {0}, count_words(spans[0].of(text))
    for i in sorted(range(1, len(spans)), key=lambda i: -scores[i]):
        words = count_words(spans[i].of(text))
        if held + words <= max_words and scores[i] > 0:
            chosen.add(i)
            held += words
    return " ".join(" ".join(spans[i].of(text).split()) for i in sorted(chosen))
