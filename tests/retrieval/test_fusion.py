import pytest

from retrieval.fusion import Fusion, fuse


def test_what_both_rankings_hold_comes_first():
    assert [item for item, _ in fuse([[1, 2, 3], [4, 2, 5]], [1, 1])] == [2, 1, 4, 3, 5]


def test_a_heavier_ranking_prevails():
    assert fuse([[1, 2], [2, 1]], [1, 0.5])[0][0] == 1
    assert fuse([[1, 2], [2, 1]], [0.5, 1])[0][0] == 2


def test_one_empty_ranking_leaves_the_other():
    assert [item for item, _ in fuse([[], [7, 8]], [1, 0.2])] == [7, 8]
    assert fuse([[], []], [1, 1]) == []


def test_every_ranking_needs_its_weight():
    with pytest.raises(ValueError, match="zip"):
        fuse([[1], [2]], [1])


@pytest.mark.parametrize(
    "query",
    [
        "Termination for convenience",
        'Where is "call me Ishmael" said?',
        "What does RFC 2119 require?",
        "Was macht config_path?",
    ],
)
def test_signs_that_the_very_words_matter_raise_the_weight_of_words(query):
    fusion = Fusion()
    assert fusion.word_weight(query) > fusion.word_weight("Why does the captain hate the whale?")


def test_rare_words_raise_the_weight_of_words_up_to_the_most():
    fusion = Fusion()
    plain = fusion.word_weight("Who is Queequeg?")
    assert fusion.word_weight("Who is Queequeg?", rare_share=1.0) > plain
    assert fusion.word_weight('RFC 2119 "shall not"', rare_share=1.0) == fusion.most
