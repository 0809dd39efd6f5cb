import pytest

from retrieval.words import index_words, query_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Whale, the WHALE!", ["the", "whale", "the", "whale"]),
        ("Café naïve ﬁsh Straße", ["cafe", "naive", "fish", "strasse"]),
        ("snake_case e-mail v1.2", ["snake", "case", "e", "mail", "v1", "2"]),
        ("Где живёт ёж?", ["где", "живет", "еж"]),
        ("أَحْمَد كتـاب", ["احمد", "كتاب"]),
        ("मुंबई में क्या हुआ।", ["मुंबई", "में", "क्या", "हुआ"]),
        ("ＡＢＣ１２", ["abc12"]),
        ("", []),
        ("\ud800 \x00 …", []),
    ],
)
def test_words_of_spaced_scripts_lose_case_and_accents_but_no_letters(text, words):
    assert index_words(text) == query_words(text) == words


def test_runs_without_spaces_become_pairs():
    assert query_words("白鯨を見た ok") == ["白鯨", "鯨を", "を見", "見た", "ok"]
    assert query_words("고래를") == ["고래", "래를"]


def test_one_han_character_finds_the_words_that_hold_it():
    assert set(query_words("鯨")) <= set(index_words("白鯨を見た"))


@pytest.mark.parametrize("text", ["白鯨を見た", "ประเทศไทย", "မြန်မာ", "고래를 잡다", "Ahab's leg"])
def test_what_a_query_asks_for_is_what_a_passage_holds(text):
    assert set(query_words(text)) <= set(index_words(text))


def test_endless_words_are_cut():
    assert [len(word) for word in index_words("x" * 10_000)] == [64]
