"""The measure itself, against a plain table."""

import random

import pytest
from twins import share_anywhere, share_in_order, words


def table(a, b):
    """Longest common subsequence by the schoolbook table."""
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
        above = row
    return above[-1]


@pytest.mark.parametrize("seed", range(20))
def test_share_equals_the_table_on_small_texts(seed):
    dice = random.Random(seed)
    a = [dice.choice("abcdefg") for _ in range(dice.randrange(1, 60))]
    b = [dice.choice("abcdefg") for _ in range(dice.randrange(60))]
    assert share_in_order(a, b) == pytest.approx(table(a, b) / len(a))


def test_a_moved_part_counts_once_and_a_lost_word_counts_as_lost():
    text = [f"w{i}" for i in range(1000)]
    assert share_in_order(text, text) == 1
    assert share_in_order(text, text[100:] + text[:100]) == 0.9
    assert share_in_order(text, text[:500] + text[510:]) == 0.99
    assert share_anywhere(text, text[100:] + text[:100]) == 1


def test_words_are_letters_without_case_marks_and_ligatures():
    assert words("The oﬃce’s Café — 日本語!") == ["the", "office", "s", "cafe", "日", "本", "語"]
