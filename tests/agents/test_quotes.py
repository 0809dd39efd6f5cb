import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.quotes import locate
from memory.document import Span

TEXT = "“Call me Ishmael,” he said.\nSome years ago—never mind how\nlong precisely—I went to sea…"


def test_an_exact_quote_is_found_where_it_stands():
    assert locate("Call me Ishmael", TEXT) == Span(1, 16)


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("never mind how long precisely", "never mind how\nlong precisely"),
        ('"Call me Ishmael," he said.', "Call me Ishmael,” he said"),
        ("some years ago - never", None),  # spaces around the dash change words apart
        ("Some years ago-never mind", "Some years ago—never mind"),
        ("I went to sea...", "I went to sea"),
        ("CALL ME ISHMAEL", "Call me Ishmael"),
        ("Call me\u00ad Ishmael", "Call me Ishmael"),
    ],
)
def test_only_what_does_not_count_may_differ(quote, words):
    span = locate(quote, TEXT)
    assert (span.of(TEXT) if span else None) == words


@pytest.mark.parametrize("quote", ["", "   ", "“”", "...", "Call me Ahab", "Ishmael said"])
def test_what_does_not_stand_there_is_not_found(quote):
    assert locate(quote, TEXT) is None


def test_looking_is_bounded_to_the_place_given():
    assert locate("the", "the end of the road", within=Span(5, 19)) == Span(11, 14)
    assert locate("road", "the end of the road", within=Span(0, 14)) is None


@given(st.text(max_size=200), st.integers(0, 199), st.integers(1, 80))
def test_any_part_of_a_text_with_a_letter_is_found(text, start, length):
    quote = text[start : start + length]
    if any(character.isalnum() for character in quote):
        span = locate(quote, text)
        assert span is not None
        assert span.of(text).strip().casefold()[:1] in quote.strip().casefold()


@pytest.mark.parametrize("text", ["straße", "ﬁne oﬃce", "ǅungla", "İstanbul"])
def test_letters_that_fold_to_several_keep_their_places(text):
    quote = text.upper()
    span = locate(quote, f"x {text} y")
    assert span is not None
    assert span.of(f"x {text} y") == text
