"""Whether a query's passages stand together in a document, and their order where they do.

What a meeting says of a topic, or a story of a quarrel, goes on for pages, of which no single
passage says much; a clause of a contract stands alone. The places of the best passages tell.
"""

from collections.abc import Mapping, Sequence

TOP = 10  # passages of a document that are looked at
LEAST_CHUNKS = 3 * TOP  # of a shorter document the best passages stand together anyway
TOGETHER = 0.35
REACH = 3  # chunks on either side
FADING = 0.7  # what a chunk further away counts, each step
FIRST = 2  # passages that stay the first: a fact that stands alone is not lost


def togetherness(numbers: Sequence[int], size: int) -> float:
    """How much more often some chunks of a document stand beside each other than by chance.

    Args:
        numbers: Of the chunks; at least two.
        size: How many chunks the document has, more than those.

    Returns:
        0 as by chance (less: more rarely), 1 where each has another one beside it.
    """
    chosen = set(numbers)
    beside = sum(n - 1 in chosen or n + 1 in chosen for n in chosen) / len(chosen)
    chance = 1 - (1 - (len(chosen) - 1) / (size - 1)) ** 2
    return (beside - chance) / (1 - chance)


def by_stretches(
    ranked: Sequence[tuple[int, float]], scores: Mapping[int, float], size: int
) -> list[tuple[int, float]]:
    """A document's passages in the order of their surroundings, where the best stand together.

    The scores stay and change hands, so that the document fares among others as it did.

    Args:
        ranked: Chunk numbers of one document with their scores, best first.
        scores: What each of its chunks has by itself; one without has 0.
        size: How many chunks the document has.
    """
    best = sorted(scores, key=lambda n: (-scores[n], n))[:TOP]
    if size < LEAST_CHUNKS or len(best) < TOP or togetherness(best, size) < TOGETHER:
        return list(ranked)

    def around(number: int) -> float:
        return scores.get(number, 0.0) + sum(
            FADING**step * (scores.get(number - step, 0.0) + scores.get(number + step, 0.0))
            for step in range(1, REACH + 1)
        )

    numbers = [number for number, _ in ranked]
    order = numbers[:FIRST] + sorted(numbers[FIRST:], key=lambda n: (-around(n), n))
    return [(number, score) for number, (_, score) in zip(order, ranked, strict=True)]
