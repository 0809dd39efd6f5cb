import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.document import Document, Page, Section, Span


def document(*, pages=(), sections=()) -> Document:
    return Document(
        id="a" * 64,
        name="d.pdf",
        title="D",
        media_type="application/pdf",
        text="x" * 100,
        pages=pages or (Page(0, "", Span(0, 100)),),
        sections=sections,
    )


def test_a_span_runs_forwards_from_zero_on():
    for start, end in ((-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="forwards"):
            Span(start, end)
    assert Span(2, 5).of("abcdefg") == "cde"
    assert Span(2, 5).overlaps(Span(4, 9))
    assert not Span(2, 5).overlaps(Span(5, 9))
    assert Span(2, 5).contains(Span(2, 5))


def test_the_page_of_a_character_is_never_a_blank_one():
    made = document(
        pages=(
            Page(0, "i", Span(0, 10)),
            Page(1, "ii", Span(12, 12), "blank"),
            Page(2, "1", Span(12, 30)),
            Page(3, "2", Span(32, 32), "blank"),
        )
    )
    found = {offset: made.page_at(offset).index for offset in (0, 9, 10, 11, 12, 29, 31, 32, 99)}
    assert found == {0: 0, 9: 0, 10: 0, 11: 0, 12: 2, 29: 2, 31: 2, 32: 2, 99: 2}


@st.composite
def nested(draw) -> tuple[Section, ...]:
    """Sections that nest as a table of contents does."""
    starts = sorted(draw(st.lists(st.integers(0, 99), max_size=12)))
    levels = [draw(st.integers(1, 4)) for _ in starts]
    made = []
    for i, (start, level) in enumerate(zip(starts, levels, strict=True)):
        later = (
            s for s, below in zip(starts[i + 1 :], levels[i + 1 :], strict=True) if below <= level
        )
        made.append(Section(f"s{i}", level, Span(start, next(later, 100))))
    return tuple(made)


@given(nested(), st.integers(0, 99))
def test_the_section_path_is_every_section_around_a_character(sections, offset):
    expected = tuple(s.title for s in sections if s.span.start <= offset < s.span.end)
    assert document(sections=sections).section_path(offset) == expected
