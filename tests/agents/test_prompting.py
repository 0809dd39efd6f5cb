import pytest

from agents.prompting import render


def test_the_document_comes_before_the_question():
    for name in ("answer-small", "answer-small-whole", "answer-large"):
        one = render(name, passages="THE PASSAGES", question="first?")
        two = render(name, passages="THE PASSAGES", question="second?")
        assert [m.role for m in one] == ["system", "user"]
        assert one[0] == two[0]
        shared = one[1].content[: one[1].content.index("first?")]
        assert "THE PASSAGES" in shared
        assert two[1].content.startswith(shared)


def test_a_missing_and_an_unused_slot_are_errors():
    with pytest.raises(ValueError, match="slots"):
        render("answer-small", passages="x")
    with pytest.raises(ValueError, match="slots"):
        render("answer-small", passages="x", question="y", mood="z")


def test_dollars_in_a_document_stay():
    assert (
        "costs $5 or $name"
        in render("answer-small", passages="costs $5 or $name", question="q")[1].content
    )
