"""Passages that stand together, and what that changes."""

import pytest

from retrieval.stretches import by_stretches, togetherness

SPREAD = [3, 14, 25, 36, 47, 58, 69, 80, 91, 98]


def ranked(scores):
    return sorted(scores.items(), key=lambda each: -each[1])


def test_togetherness_is_one_for_a_run_and_below_zero_for_what_is_spread():
    assert togetherness([5, 6, 7, 8], 100) == 1.0
    # by chance 1 - (1 - 1/4) ** 2 = 7/16 of two chunks of five stand beside the other
    assert togetherness([0, 4], 5) == pytest.approx((0 - 7 / 16) / (9 / 16))
    assert togetherness([0, 1], 5) == 1.0


def test_where_the_best_stand_together_a_stretch_goes_before_a_lone_passage():
    scores = dict.fromkeys(range(40, 49), 0.5) | {90: 1.0, 10: 0.9, 70: 0.6}
    order = [n for n, _ in by_stretches(ranked(scores), scores, 100)]
    assert order[:2] == [90, 10]  # the two best stay
    assert order[2] == 43  # the first with three others on either side
    assert order[-1] == 70


def test_scores_only_change_hands():
    scores = {n: 0.5 + n / 1000 for n in range(40, 49)} | {90: 1.0, 10: 0.9, 70: 0.6}
    before = ranked(scores)
    after = by_stretches(before, scores, 100)
    assert [score for _, score in after] == [score for _, score in before]
    assert sorted(n for n, _ in after) == sorted(scores)


def test_passages_that_stand_alone_keep_their_order():
    scores = {n: 1 - place / 20 for place, n in enumerate(SPREAD)}
    assert by_stretches(ranked(scores), scores, 100) == ranked(scores)


def test_a_short_document_says_nothing_of_where_its_passages_stand():
    scores = {n: 0.5 + (n % 7) / 20 for n in range(12)}
    assert by_stretches(ranked(scores), scores, 12) == ranked(scores)
