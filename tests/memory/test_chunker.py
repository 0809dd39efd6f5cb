from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.blocks import Block
from memory.canonical import build
from memory.chunker import chunk
from memory.sentences import sentences


def words(texts):
    return [len(text.split()) for text in texts]


def letters(texts):
    return [len("".join(text.split())) for text in texts]


def made(*blocks):
    return build(blocks, id="1", name="a", size_bytes=1)


def chunks(document, max_tokens, *, count_tokens=words, **options):
    spans = chunk(document, count_tokens=count_tokens, max_tokens=max_tokens, **options)
    return [span.of(document.text) for span in spans]


def prose(num_words, mark="w"):
    """A paragraph of ten-word sentences."""
    sentence = f"{mark.capitalize()}{' word' * 9}."
    return Block(" ".join([sentence] * (num_words // 10)))


BLOCKS = st.lists(
    st.one_of(
        st.builds(Block, st.text("ab .?!\n。|", max_size=120)),
        st.builds(Block, st.text("ab ", min_size=1, max_size=9), st.just("heading"), st.just(1)),
        st.integers(1, 9).map(lambda n: prose(10 * n)),
        st.just(Block("x" * 300)),
        st.just(Block("n | m\n" * 9, "table")),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(BLOCKS, st.integers(1, 80), st.integers(0, 40), st.sampled_from([words, letters]))
def test_chunks_cover_all_in_order_and_are_bounded(blocks, max_tokens, min_tokens, count_tokens):
    document = made(Block("a"), *blocks)
    text = document.text
    spans = chunk(document, count_tokens=count_tokens, max_tokens=max_tokens, min_tokens=min_tokens)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    covered = "".join("".join(span.of(text).split()) for span in spans)
    assert covered == "".join(text.split())
    ends = {span.end for span in sentences(text)}
    for span in spans:
        assert span.of(text) == span.of(text).strip()
        # A chunk ends within a sentence only where that is longer than a chunk.
        if span.end not in ends:
            around = next(s for s in sentences(text) if s.start < span.end < s.end)
            assert count_tokens([around.of(text)])[0] > max_tokens
        assert count_tokens([span.of(text)])[0] <= max_tokens


def test_a_chunk_ends_with_its_section():
    got = chunks(
        made(Block("One", "heading", 1), prose(40), Block("Two", "heading", 1), prose(30)), 60
    )
    assert [piece.split("\n")[0] for piece in got] == ["One", "Two"]


def test_tiny_sections_share_a_chunk():
    items = [part for n in range(6) for part in (Block(f"Head {n}", "heading", 1), prose(10))]
    assert len(chunks(made(*items), 80, min_tokens=40)) == 2


def test_a_paragraph_that_fits_is_not_cut():
    got = chunks(made(prose(60, "a"), prose(60, "b"), prose(30, "c")), 100)
    assert [piece[0] for piece in got] == ["A", "B"]


def test_no_scrap_of_a_section_is_left_over():
    got = chunks(
        made(Block("One", "heading", 1), prose(110), Block("Two", "heading", 1), prose(50)), 100
    )
    assert words(got) == [81, 30, 51]


def test_tables_are_cut_between_rows():
    rows = [f"row {n} | It is. So it is. | {n}" for n in range(30)]
    for piece in chunks(made(Block("\n".join(rows), "table")), 40):
        assert set(piece.split("\n")) <= set(rows)


def test_each_sentence_is_counted_once_in_few_batches():
    seen, batches = [], []

    def count(texts):
        seen.extend(texts)
        batches.append(len(texts))
        return words(texts)

    document = made(*[prose(100) for _ in range(1000)])
    chunk(document, count_tokens=count, max_tokens=50)
    assert len(seen) == 10_000
    assert len(batches) == 3


def test_a_document_of_twenty_megabytes_takes_time_in_proportion():
    import time

    document = made(*[prose(100, "some") for _ in range(4000)], Block("endless " * 250_000))
    started = time.process_time()
    got = chunks(document, 100)
    assert time.process_time() - started < 15
    assert max(words(got)) <= 100


def test_a_chunk_of_no_tokens_is_refused():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        chunks(made(prose(10)), 0)
