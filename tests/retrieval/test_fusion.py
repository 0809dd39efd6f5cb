import pytest

from retrieval.fusion import Fusion, fuse, lifted


def test_scores_add_up_by_hand():
    scores = fuse([(1, 0.75), (2, 0.5), (3, 0.25)], [(2, 8.0), (4, 2.0)], word_weight=0.5)
    assert scores == {1: 0.5, 2: 0.75, 3: 0.0, 4: 0.125}


def test_one_empty_ranking_leaves_the_other():
    assert fuse([], [(7, 3.0), (8, 1.5)], word_weight=0.5) == {7: 0.5, 8: 0.25}
    assert fuse([(7, 0.5), (8, 0.25)], [], word_weight=0.5) == {7: 0.25, 8: 0.0}
    assert fuse([], [], word_weight=0.5) == {}


def test_words_without_any_weight_in_the_index_are_no_trouble():
    assert fuse([], [(7, 0.0)], word_weight=0.5) == {7: 0.0}


def test_a_good_passage_lifts_its_neighbours_past_a_lone_one():
    scores = {10: 1.0, 11: 0.0, 20: 0.25}
    beside = {10: [9, 11], 11: [10], 20: [], 9: [10]}
    assert lifted(scores, beside, lift=0.5) == [(10, 1.0), (9, 0.5), (11, 0.5), (20, 0.25)]
    assert [item for item, _ in lifted(scores, beside, lift=0.0)] == [10, 20, 9, 11]


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
