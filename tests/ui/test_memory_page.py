"""The page of memories alone, without a server."""

import pytest
from streamlit.testing.v1 import AppTest

from memory.memories import finished

TALE = "\n\n".join(
    f"Chapter {i}\n\n"
    + f"In the year {1800 + i} the miller of Ansty sold {i + 3} sacks of flour. " * 20
    for i in range(1, 5)
)


def draw() -> None:
    from ui.memory_page import page

    page()


@pytest.fixture
def tale(library, tmp_path):
    path = tmp_path / "tale.txt"
    path.write_text(TALE, encoding="utf-8")
    return library.add(path)


def shown():
    page = AppTest.from_function(draw, default_timeout=30).run()
    if page.toggle:
        page.toggle[0].set_value(True)
        page.run()
    assert not page.exception
    return page


def html(page) -> str:
    return "\n".join(str(element.proto) for element in page.get("html"))


def test_an_empty_library_says_what_to_do(library):
    assert "The library is empty" in shown().info[0].value


def test_what_is_missing_is_estimated_and_made_by_a_job(library, tale):
    page = shown()
    assert "calls of the model" in page.markdown[0].value
    next(button for button in page.button if button.label == "Make it").click()
    page.run()
    assert [(job.kind, job.document_id) for job in library.jobs.list()] == [("remember", tale.id)]


def test_gists_stand_beside_their_places_and_foreign_text_is_text(library, tale, monkeypatch):
    from serving.scripted import ScriptedLLM

    said = "The miller sold <b>flour</b> in Ansty."
    monkeypatch.setattr(library.engines, "_model", ScriptedLLM([said] * 60))
    tree = finished(library.memories.tree(tale.id))
    assert tree.usage.calls > 4
    calls = len(library.model.seen)
    page = shown()
    assert "the gists leave out" in page.caption[0].value
    assert "&lt;b&gt;flour&lt;/b&gt;" in html(page)
    assert "<b>" not in html(page)
    assert "<details" in html(page)
    assert len(library.model.seen) == calls  # looking makes no call


def test_the_job_makes_gists_and_tree(library, tale, monkeypatch):
    from app.tasks.remember import Remember
    from serving.scripted import ScriptedLLM

    monkeypatch.setattr(
        library.engines, "_model", ScriptedLLM(["The miller sold flour in Ansty."] * 60)
    )
    told = []
    ended = Remember("Tale", tale.id).run(library, told.append, "")
    assert "gists" in ended
    assert told[-1].done == told[-1].total
    assert library.memories.num_calls(tale.id, tree=True) == 0


def test_the_way_of_the_latest_question_is_lit(library, tale, monkeypatch):
    from serving.scripted import ScriptedLLM

    said = ["The miller sold 5 sacks of flour in 1802."]
    monkeypatch.setattr(library.engines, "_model", ScriptedLLM(said * 90))
    finished(library.memories.tree(tale.id))
    assert "visited" not in html(shown())
    talks = library.conversations
    turn = talks.ask(talks.begin(), "How many sacks did the miller sell in 1802?", reader="tree")
    assert talks.wait(turn.id, 30)
    steps = talks.turn(turn.id).steps
    assert any(step["step"] == "Walked" for step in steps)
    page = shown()
    assert "How many sacks" in page.selectbox[1].options[1]
    lit = html(page)
    assert "gt-lit" in lit
    assert lit.count("<details open>") >= 1
    page.selectbox[1].set_value("").run()
    assert "gt-lit" not in html(page)
    library.rename(tale.id, "Another")  # a visit stays with its document
    assert "gt-lit" in html(shown())
