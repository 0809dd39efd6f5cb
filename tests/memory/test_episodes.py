import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.document import Document, Page, Section, Span
from memory.episodes import drift_episodes
from memory.making import Making
from memory.memories import finished
from memory.paginate import model_episodes
from memory.wordcount import count_words
from serving.errors import BadReply
from serving.scripted import ScriptedLLM


class Nothing:
    """Keeps what it is given."""

    def __init__(self):
        self.rows = {}

    def find(self, document_id, keys):
        return {key: self.rows[key] for key in keys if key in self.rows}

    def put(self, document_id, key, *, kind, data, usage):
        self.rows[key] = type("Row", (), {"data": data})()


def document(text, sections=()):
    return Document(
        id="d",
        name="d.txt",
        title="D",
        media_type="text/plain",
        text=text,
        pages=(Page(0, "", Span(0, len(text))),),
        sections=sections,
    )


def chunks_of(text, size=90):
    return [Span(a, min(a + size, len(text))) for a in range(0, len(text), size)]


def tiles(episodes, text):
    assert [e.start for e in episodes] == [0, *(e.end for e in episodes[:-1])][: len(episodes)]
    assert not text or episodes[-1].end == len(text)


TEXTS = st.one_of(
    st.text(max_size=900),
    st.lists(st.text("ab.\n ", max_size=80), max_size=30).map("\n\n".join),
    st.text("漢字かな。、ไทย ", max_size=700),
    st.text("x", max_size=3_000),
)


@settings(max_examples=120, deadline=None)
@given(text=TEXTS, size=st.integers(5, 200), low=st.integers(1, 12), seed=st.integers(0, 9))
def test_drift_tiles_any_text_within_the_most_words(text, size, low, seed):
    chunks = chunks_of(text, size)
    vectors = np.random.default_rng(seed).normal(size=(len(chunks), 4)).astype(np.float32)
    middle = len(text) // 2
    sections = [Section("A", 1, Span(0, middle)), Section("B", 1, Span(middle, len(text)))]
    episodes = drift_episodes(
        document(text, sections if text else ()),
        chunks,
        vectors,
        min_words=low,
        max_words=2 * low,
    )
    tiles(episodes, text)
    assert all(count_words(e.of(text)) <= 2 * low or len(e) < 2 for e in episodes)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, low=st.integers(1, 12))
def test_the_models_breaks_tile_any_text(text, low):
    making = model_episodes(
        document(text),
        model=ScriptedLLM([]),
        artefacts=Nothing(),
        min_words=low,
        max_words=2 * low,
    )
    tiles(finished(making), text)


def test_a_line_of_five_megabytes_is_cut():
    text = "word " * 1_000_000
    episodes = drift_episodes(
        document(text), chunks_of(text, 1_200), None, min_words=280, max_words=600
    )
    tiles(episodes, text)
    assert max(count_words(e.of(text)) for e in episodes) <= 600


def test_a_break_falls_where_the_vectors_turn_and_where_a_section_begins():
    text = "".join(f"Sentence number {i:02d} is here. " for i in range(40))
    chunks = [Span(31 * i, 31 * (i + 1)) for i in range(40)]
    vectors = np.array([[1, 0]] * 17 + [[0, 1]] * 23, dtype=np.float32)
    cut = drift_episodes(document(text), chunks, vectors, min_words=60, max_words=130)
    assert chunks[17].start in [e.start for e in cut]
    head = [Section("Two", 1, Span(chunks[23].start, len(text)))]
    by_section = drift_episodes(document(text, head), chunks, None, min_words=60, max_words=130)
    assert chunks[23].start in [e.start for e in by_section]


SENTENCES = "".join(f"The {name} was seen. " for name in ("ox", "elk", "owl", "fox", "hen", "bee"))


def test_the_model_chooses_among_the_breaks_that_are_allowed():
    low = ScriptedLLM([], choices=[0] * 20)
    high = ScriptedLLM([], choices=[1] * 20)
    first = [
        finished(
            model_episodes(
                document(SENTENCES), model=model, artefacts=Nothing(), min_words=4, max_words=12
            )
        )[0]
        for model in (low, high)
    ]
    assert len(first[0]) < len(first[1])
    assert "«1»" in low.seen[0][-1].content


def test_breaks_that_were_found_are_not_asked_for_again():
    kept, model = Nothing(), ScriptedLLM([])
    one, two = (
        finished(
            model_episodes(
                document(SENTENCES), model=model, artefacts=kept, min_words=4, max_words=12
            )
        )
        for _ in range(2)
    )
    assert one == two
    assert len(model.seen) == len({call[-1].content for call in model.seen})


def test_without_a_usable_choice_the_last_break_that_fits_is_taken():
    class Mute(ScriptedLLM):
        def choose(self, messages, options):
            raise BadReply("no log-probabilities")

    model = Mute(['{"choice": "99"}'] * 40)
    making = model_episodes(
        document(SENTENCES), model=model, artefacts=Nothing(), min_words=4, max_words=12
    )
    episodes = finished(making)
    tiles(episodes, SENTENCES)
    assert count_words(episodes[0].of(SENTENCES)) == 12


def test_progress_never_runs_backwards():
    making = model_episodes(
        document(SENTENCES * 5),
        model=ScriptedLLM([]),
        artefacts=Nothing(),
        min_words=4,
        max_words=12,
    )
    steps = list(making)
    assert all(isinstance(step, Making) for step in steps)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == steps[-1].total


@pytest.mark.parametrize(
    ("text", "words"), [("one two", 2), ("漢字かな", 2), ("", 0), ("x" * 200, 10), ("สวัสดี", 3)]
)
def test_words_are_counted_in_every_script(text, words):
    assert count_words(text) == words
