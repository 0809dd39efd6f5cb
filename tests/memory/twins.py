"""The same text in two formats: how much of the one stands, in order, in the other."""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

NGRAM = 8

# A character of a script without spaces is a word; elsewhere a run of letters or digits is.
_WORD = re.compile(
    "[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[^\\W_\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def words(text: str) -> list[str]:
    """Words without case, punctuation, ligatures or marks such as Arabic vowels."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    # The marks of kana stay: they make other letters of them.
    bare = "".join(
        c for c in folded if c in "\u3099\u309a" or not (unicodedata.combining(c) or c == "\u00ad")
    )
    return _WORD.findall(unicodedata.normalize("NFC", bare))


def share_in_order(words_a: Sequence[str], words_b: Sequence[str]) -> float:
    """Share of the first's words that stand in the second in the same order, 0 to 1.

    It is the longest common subsequence: between runs of words that are unique in both texts and
    come in the same order (the longest such chain), the exact length is counted. So it is a lower
    bound of the exact share, and in practice equals it, at the speed of a few seconds for a book.
    """
    if not words_a:
        return 1.0
    found = 0
    start_a = start_b = 0
    for at_a, at_b in [*_anchors(words_a, words_b), (len(words_a), len(words_b))]:
        found += _common(words_a[start_a:at_a], words_b[start_b:at_b])
        found += at_a < len(words_a)  # the anchor itself
        start_a, start_b = at_a + 1, at_b + 1
    return found / len(words_a)


def share_anywhere(words_a: Sequence[str], words_b: Sequence[str]) -> float:
    """Share of the first's words that stand in the second, as often, in whatever order."""
    both = Counter(words_a) & Counter(words_b)
    return both.total() / len(words_a) if words_a else 1.0


def share_in_runs(words_a: Sequence[str], words_b: Sequence[str], length: int = 3) -> float:
    """Share of the first's words that belong to a run of ``length`` words that the second holds.

    The order within a passage counts, the order of the passages does not: for documents that set
    their tables, notes or contents at different places.
    """
    held = {tuple(words_b[i : i + length]) for i in range(len(words_b) - length + 1)}
    found = [False] * len(words_a)
    for i in range(len(words_a) - length + 1):
        if tuple(words_a[i : i + length]) in held:
            found[i : i + length] = [True] * length
    return sum(found) / len(words_a) if words_a else 1.0


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places (in a, in b) of the longest chain of n-grams that both hold exactly once."""
    places_b = _unique_ngrams(b)
    pairs = [(i, places_b[gram]) for gram, i in _unique_ngrams(a).items() if gram in places_b]
    ends: list[int] = []  # the smallest place in b that ends a chain of that length
    last: list[int] = []  # which pair that is
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _unique_ngrams(sequence: Sequence[str]) -> dict[tuple[str, ...], int]:
    grams = [tuple(sequence[i : i + NGRAM]) for i in range(len(sequence) - NGRAM + 1)]
    counts = Counter(grams)
    return {gram: i for i, gram in enumerate(grams) if counts[gram] == 1}


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, one machine word for 64 columns of the table."""
    masks: dict[str, int] = {}
    for place, word in enumerate(a):
        masks[word] = masks.get(word, 0) | 1 << place
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        taken = row & masks.get(word, 0)
        if taken:
            row = ((row + taken) | (row - taken)) & full
    return len(a) - row.bit_count()
