import sqlite3
import threading
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from memory.artefacts import Artefacts, artefact_key
from memory.database import connect, sqlite_url
from memory.document import Document, Page, Section, Span
from memory.errors import DocumentNotFound
from memory.faults import fault, tidy
from memory.intake import Intake
from memory.memories import Memories, finished
from memory.options import MemoryOptions, usual_options
from memory.store import Entry, Store
from memory.tree_shape import shape_of
from serving.errors import ModelUnavailable
from serving.model import Usage
from serving.scripted import Reply, ScriptedLLM

NAMES = ("Adela", "Bertram", "Clothilde", "Dietmar", "Edith", "Fabian", "Gisela", "Hubert")
PARTS = [
    f"On the {i + 2}nd day {name} went to the market of Ansty and bought {i + 11} red apples. "
    f"The apples of {name} were sweet, and the weather stayed as fine as anybody could wish for. "
    f"In the evening {name} came home, slept for a long while and dreamt of the market again. "
    for i, name in enumerate(NAMES)
]
TEXT = "".join(PARTS)
OPTIONS = MemoryOptions(min_words=30, max_words=60, fan_out=3)


def gist_for(messages):
    """What a good model would write: who, and how many apples."""
    passage = messages[-1].content
    found = [f"{name} bought {i + 11} apples." for i, name in enumerate(NAMES) if name in passage]
    return " ".join(found)


@pytest.fixture
def store(tmp_path):
    store = Store(connect(sqlite_url(tmp_path / "library.db")), where="the library")
    yield store
    store.close()


def entry_of(document):
    return Entry(
        id=document.id,
        name=document.name,
        title=document.title,
        media_type=document.media_type,
        language="en",
        paged=False,
        size_bytes=len(document.text),
        file="dd/d.txt",
        added_at=datetime(2026, 1, 1, tzinfo=UTC),
        state="reading",
        num_pages=1,
        pages_read=1,
        num_words=len(document.text.split()),
    )


def added(store, text=TEXT, sections=(), key="d" * 64):
    document = Document(
        id=key,
        name="d.txt",
        title="The Market",
        media_type="text/plain",
        text=text,
        pages=(Page(0, "", Span(0, len(text))),),
        sections=sections,
    )
    starts = [0]
    for part in PARTS[:-1]:
        starts.append(starts[-1] + len(part))
    chunks = [Span(a, b) for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    intake = Intake(store)
    intake.claim(entry_of(document), owner="me", now=0.0, stale_s=60)
    intake.put_text(document, chunks)
    intake.finish(document.id)
    return document


def memories(store, model, options=OPTIONS):
    return Memories(
        document=store.document,
        chunks=store.chunks,
        vectors=lambda key: None,
        model=model,
        artefacts=Artefacts(store),
        options=options,
    )


def test_gists_tile_the_document_and_say_how_much_shorter_they_are(store):
    document = added(store)
    memory = finished(memories(store, ScriptedLLM([gist_for] * 8)).gists(document.id))
    assert "".join(gist.span.of(TEXT) for gist in memory.gists) == TEXT
    assert [gist.by for gist in memory.gists] == ["model"] * 8
    assert memory.gists[2].text == "Clothilde bought 13 apples."
    words = len(TEXT.split())
    assert memory.compression == pytest.approx(100 * (1 - 32 / words))
    assert memory.at(len(PARTS[0]) + 3).number == 1
    assert memory.usage.calls == 8


def test_what_was_made_is_not_made_again_and_a_changed_option_is(store):
    document = added(store)
    finished(memories(store, ScriptedLLM([gist_for] * 8)).gists(document.id))
    again = finished(memories(store, ScriptedLLM([])).gists(document.id))
    assert again.usage == Usage()
    assert again.gists[0].text == "Adela bought 11 apples."
    other = memories(store, ScriptedLLM([gist_for] * 8, name="another"))
    assert finished(other.gists(document.id)).usage.calls == 8


def test_a_model_that_goes_away_loses_only_the_call_in_flight(store):
    document = added(store)
    model = ScriptedLLM([gist_for] * 3 + [ModelUnavailable("no server")])
    with pytest.raises(ModelUnavailable):
        finished(memories(store, model).gists(document.id))
    rest = ScriptedLLM([gist_for] * 5)
    assert finished(memories(store, rest).gists(document.id)).usage.calls == 5


def test_closing_stops_between_words_and_keeps_what_is_finished(store):
    document = added(store)
    slow = ScriptedLLM([gist_for, gist_for, Reply("word " * 500, word_s=0.01)])
    making = memories(store, slow).gists(document.id)
    for step in making:
        if step.done == 2:
            break
    making.close()
    assert threading.active_count() < 20
    assert len(slow.seen) <= 3
    rest = ScriptedLLM([gist_for] * 6)
    assert finished(memories(store, rest).gists(document.id)).usage.calls == 6


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("", "empty"),
        ("I'm sorry, I cannot help with that.", "refuses"),
        ("Adela went home. " * 12, "again and again"),
        ("Adela bought 99 apples at the market.", "number 99"),
        (
            "Quantum flux capacitors dominate industrial engineering.",
            "other things",
        ),
        (TEXT, "not shorter"),
    ],
)
def test_a_bad_gist_is_shown_to_the_model_once_and_then_taken_from_the_text(store, bad, why):
    document = added(store)
    model = ScriptedLLM([bad, bad] + [gist_for] * 7)
    memory = finished(memories(store, model).gists(document.id))
    first = memory.gists[0]
    assert (first.by, first.fault != "") == ("extract", True)
    assert first.text.split(". ")[0] in " ".join(TEXT.split())
    assert why in model.seen[1][-1].content
    assert memory.gists[1].by == "model"


def test_a_bad_gist_may_be_mended(store):
    document = added(store)
    model = ScriptedLLM(["", "Adela bought 11 apples."] + [gist_for] * 7)
    memory = finished(memories(store, model).gists(document.id))
    assert memory.gists[0].text == "Adela bought 11 apples."
    assert memory.usage.calls == 9


def test_a_tiny_model_is_not_asked(store):
    document = added(store)
    options = replace(OPTIONS, gists="extract")
    tree = finished(memories(store, ScriptedLLM([]), options).tree(document.id))
    assert tree.root.span == Span(0, len(TEXT))
    assert all(node.text for node in tree.nodes)


def test_the_tree_spans_the_document_and_every_node_its_children(store):
    document = added(store)
    model = ScriptedLLM([gist_for] * 40)
    tree = finished(memories(store, model).tree(document.id))
    assert tree.root.span == Span(0, len(TEXT))
    assert tree.root.parent is None
    leaves = [node for node in tree.nodes if not node.children]
    assert "".join(leaf.span.of(TEXT) for leaf in leaves) == TEXT
    for node in tree.nodes:
        children = tree.children(node)
        if children:
            assert len(children) <= 3
            assert node.level == 1 + max(child.level for child in children)
            assert (node.span.start, node.span.end) == (
                children[0].span.start,
                children[-1].span.end,
            )
            assert all(child.parent == node.number for child in children)
    assert tree.path(leaves[5])[0] is tree.root
    before = len(model.seen)
    assert finished(memories(store, model).tree(document.id)).usage == Usage()
    assert len(model.seen) == before


def test_a_tree_follows_the_contents_where_they_part_the_document(store):
    edges = [0, 2, 5, 8]
    starts = [sum(map(len, PARTS[:edge])) for edge in edges]
    sections = [
        Section(f"Chapter {i + 1}", 1, Span(a, b)) for i, (a, b) in enumerate(pairwise(starts))
    ]
    document = added(store, sections=sections)
    tree = finished(memories(store, ScriptedLLM([gist_for] * 20)).tree(document.id))
    assert [child.title for child in tree.children(tree.root)] == [s.title for s in sections]
    assert [len(child.children) for child in tree.children(tree.root)] == [2, 3, 3]


def test_an_even_tree_is_no_deeper_than_it_must_be():
    document = Document(
        id="d", name="d", title="d", media_type="text/plain", text="x" * 30, pages=(), sections=()
    )
    episodes = [Span(i, i + 1) for i in range(30)]

    def depth(group):
        return 1 + max(map(depth, group.children), default=0) if group.children else 1

    assert depth(shape_of(document, episodes, 6, "even")) == 3
    assert depth(shape_of(document, episodes[:1], 6, "even")) == 1


def test_an_estimate_counts_what_is_missing(store):
    document = added(store)
    made = memories(store, ScriptedLLM([gist_for] * 40))
    before = made.estimate(document.id, tree=False)
    assert before.calls == 8
    assert before.prompt_tokens > 8 * 40
    assert made.estimate(document.id, tree=True).calls > 8
    finished(made.gists(document.id))
    assert made.estimate(document.id, tree=False).calls == 0


def test_nothing_is_left_of_a_deleted_document(store, tmp_path):
    document = added(store)
    finished(memories(store, ScriptedLLM([gist_for] * 40)).tree(document.id))
    store.delete(document.id)
    assert b"Clothilde" not in (tmp_path / "library.db").read_bytes()
    with sqlite3.connect(tmp_path / "library.db") as raw:
        assert raw.execute("SELECT count(*) FROM artefacts").fetchone() == (0,)
    with pytest.raises(DocumentNotFound):
        Artefacts(store).put(document.id, "k", kind="gist", data={}, usage=Usage())


def test_two_processes_that_make_the_same_keep_one(store):
    document = added(store)
    artefacts = Artefacts(store)
    artefacts.put(document.id, "k", kind="gist", data={"text": "one"}, usage=Usage(1, 0, 1, 1))
    artefacts.put(document.id, "k", kind="gist", data={"text": "two"}, usage=Usage(1, 0, 1, 1))
    assert artefacts.find(document.id, ["k", "other"])["k"].data == {"text": "one"}
    assert artefacts.forget(document.id) == 1


def test_a_key_is_of_everything_that_shapes_the_result():
    base = {"source": "s", "prompt": "p", "model": "m", "options": {"words": 3}}
    keys = {artefact_key("gist", **base), artefact_key("summary", **base)}
    for name, value in {
        "source": "t",
        "prompt": "q",
        "model": "n",
        "options": {"words": 4},
    }.items():
        keys.add(artefact_key("gist", **{**base, name: value}))
    assert len(keys) == 6


def test_options_suit_the_model_and_bad_ones_are_told():
    assert usual_options("tiny").gists == "extract"
    assert usual_options("large").paginate == "model"
    with pytest.raises(ValueError, match="at least twice"):
        MemoryOptions(min_words=10, max_words=15)
    with pytest.raises(ValueError, match="at least 2 children"):
        MemoryOptions(fan_out=1)


def test_a_reply_is_tidied_and_a_good_one_has_no_fault():
    assert tidy("**Summary:**\n Adela\nbought apples. ") == "Adela bought apples."
    assert tidy("<<<\nAdela bought apples.\n>>>") == "Adela bought apples."
    assert fault("Adela bought 11 red apples.", PARTS[0]) == ""


def opening(messages):
    """The first words of what is to be shortened: long enough for summaries to need a call."""
    return " ".join(messages[-1].content.split("<<<")[1].split()[:18])


def test_what_is_there_is_known_without_a_call(store):
    document = added(store)
    model = ScriptedLLM([opening] * 40)
    made = memories(store, model)
    assert made.kept_gists(document.id) is None
    gists = finished(made.gists(document.id))
    assert made.kept_gists(document.id).gists == gists.gists
    assert made.kept_tree(document.id) is None
    assert made.num_calls(document.id, tree=False) == 0
    assert made.num_calls(document.id, tree=True) > 0
    tree = finished(made.tree(document.id))
    calls = len(model.seen)
    assert made.kept_tree(document.id).nodes == tree.nodes
    assert made.num_calls(document.id, tree=True) == 0
    assert len(model.seen) == calls


def test_another_embedder_leaves_the_gists_that_were_made(store):
    document = added(store)
    options = replace(OPTIONS, max_words=110)

    def embedded(seed, model):
        rows = np.random.default_rng(seed).normal(size=(8, 4)).astype(np.float32)
        return replace(memories(store, model, options), vectors=lambda key: rows)

    cuts = {len(embedded(seed, ScriptedLLM([]))._drift(document)) for seed in range(1, 9)}
    assert len(cuts) > 1
    made = finished(embedded(1, ScriptedLLM([gist_for] * 9)).gists(document.id))
    for seed in range(2, 9):
        other = embedded(seed, ScriptedLLM([]))
        assert other.num_calls(document.id, tree=False) == 0
        assert finished(other.gists(document.id)).gists == made.gists


def test_what_a_stopped_run_has_left_is_counted_where_the_model_cut_the_document(store):
    document = added(store)
    options = replace(OPTIONS, paginate="model", max_words=110)
    made = memories(store, ScriptedLLM([gist_for] * 20, choices=[0] * 30), options)
    making = made.gists(document.id)
    for step in making:
        if step.what == "gists" and step.done == step.total - 1:
            break
    making.close()
    assert made.num_calls(document.id, tree=False) == 1
    assert made.estimate(document.id, tree=False).calls == 1


def test_sections_within_sections_without_end_still_make_a_tree():
    size = 3_000
    document = Document(
        id="d",
        name="d",
        title="d",
        media_type="text/plain",
        text="x" * size,
        pages=(),
        sections=[Section(str(i), i + 1, Span(i, size)) for i in range(size)],
    )

    def leaves(group):
        if group.leaf is not None:
            return [group.leaf]
        return [leaf for child in group.children for leaf in leaves(child)]

    root = shape_of(document, [Span(i, i + 1) for i in range(size)], 6, "auto")
    assert leaves(root) == list(range(size))
