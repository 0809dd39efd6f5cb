import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.document import Span
from memory.sentences import MAX_CHARS, cut_before, sentences, trim

PIECES = st.sampled_from(
    "Mr. |word |end. |ends! |why? |\n|\n\n|。|？|「|」|।|؟ |“|”|vol. |3 |[1]|...|字|\u3000|\ufb01"
    f"|e\u0301|{'x' * 700}|{'a,b ' * 90}".split("|")
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join))


def split(text, language=""):
    return [span.of(text) for span in sentences(text, language=language)]


@settings(deadline=None)  # the first call loads the segmenter
@given(TEXTS, st.sampled_from(["", "en", "ja", "ru", "ar", "hi", "xx"]))
def test_sentences_cover_all_but_white_space_in_order_and_bounded(text, language):
    spans = sentences(text, language=language)
    assert "".join("".join(span.of(text).split()) for span in spans) == "".join(text.split())
    assert all(a.end <= b.start for a, b in pairwise(spans))
    for span in spans:
        sentence = span.of(text)
        assert sentence == sentence.strip() != ""
        assert len(sentence) <= MAX_CHARS
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        ("en", ["Mr. Smith of no. 5 met Dr. Who.", "It cost $3.5 million, e.g. a lot."]),
        ("en", ['He said "Hello there! How are you?" and left.', "See p. 12 of vol. 3.", "Why?!"]),
        ("en", ["“Is it so?” asked Mr. Bennet.", "“Go.”", "J. R. Tolkien wrote it.[3]", "Next."]),
        ("ja", ["彼は行った。", "それから？", "「そうだ。」と言った。", "本当か！"]),
        ("zh", ["你好。", "他说：“走吧！”", "我们走。"]),
        ("hi", ["यह एक वाक्य है।", "दूसरा वाक्य॥", "तीसरा।"]),
        ("ar", ["هل هذا سؤال؟", "نعم.", "انتهى!"]),
        ("ru", ["Это т. е. пример он ушёл.", "«Куда?» — спросил я.", "Никуда."]),
    ],
)
def test_sentences_of_many_languages(language, wanted):
    gap = "" if language in ("ja", "zh") else " "
    assert split(gap.join(wanted), language) == wanted
    assert split(gap.join(wanted)) == wanted  # also where the language is not known


def test_a_line_end_always_ends_a_sentence():
    assert split("Chapter 1\n\nIt was\nlate | row\n\n\n  ") == ["Chapter 1", "It was", "late | row"]


def test_a_row_of_a_table_is_one():
    assert split("Name | Says. So. | 3\nB | Yes! No. | 4") == [
        "Name | Says. So. | 3",
        "B | Yes! No. | 4",
    ]


@pytest.mark.parametrize(
    "unit", ["a", "word ", "a,b", "«a", '"', "(", "e.g. ", "。", " ", "a\u0301", "x.[1] "]
)
def test_a_line_without_end_takes_time_in_proportion_to_its_length(unit):
    """2 MB in well under what a quadratic rule needs (minutes)."""
    text = "A" + unit * (2_000_000 // len(unit)) + "z"
    start = time.process_time()
    spans = sentences(text)
    assert time.process_time() - start < 15
    assert max(map(len, spans)) <= MAX_CHARS
    assert sum(map(len, spans)) >= len(text.replace(" ", ""))


def test_long_sentences_are_cut_at_clauses_then_at_spaces():
    assert cut_before("one two, three", Span(0, 14), 12) == 9
    assert cut_before("one two three four", Span(0, 18), 15) == 14
    assert cut_before("onetwothreefour", Span(0, 15), 10) == 10
    text = "word " * 150 + "end of clause; " + "word " * 150
    first = sentences(text)[0].of(text)
    assert first.endswith("clause;")
    text = "word " * 300
    assert all(piece.endswith("word") for piece in split(text))


def test_trimming_what_is_all_white_gives_an_empty_span():
    assert trim("  \u3000 ", Span(1, 4)) == Span(1, 1)
