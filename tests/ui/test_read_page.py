"""The page "Read" without a browser: what is asked, shown, stopped, asked again, opened."""

import sys
import time
from pathlib import Path

import pytest

from app.conversations import Conversations
from app.library import Library
from app.service import Service, Services, set_services
from app.settings import Settings
from serving.errors import ModelUnavailable
from serving.scripted import Reply, ScriptedLLM

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
from fakes import HashingEmbedder

testing = pytest.importorskip("streamlit.testing.v1", reason="pip install 'gistree[ui]'")

LAMP = """The Lamp

Mira lit the lamp in the tower every evening. Her brother Joss rowed out to the reef.

On the ninth of March a storm put the lamp out. The schooner Petrel struck the reef and sank.
"""
HOSTILE = "<script>alert(1)</script> [link](javascript:alert(1)) ![x](http://evil.example/x.png)"


def script() -> None:
    import streamlit as st

    from ui import read_page

    if "elsewhere" not in st.session_state:
        read_page.page()


@pytest.fixture
def reading(tmp_path):
    """A library of one tale, a model with a script, and the page over them."""
    opened = []

    def start(*replies, text: str = LAMP):
        library = Library(
            tmp_path / "library",
            settings=Settings(library=str(tmp_path / "library"), pruner="none", reader="oprag"),
            model=ScriptedLLM(list(replies)),
            embedder=HashingEmbedder(),
        )
        if text:
            library.add(text.encode(), name="lamp.txt")
        service = Service(library.settings)
        service._library = library
        set_services(Services(everybodys=service))
        opened.append(service)
        return testing.AppTest.from_function(script, default_timeout=20).run(), library

    yield start
    set_services(None)


def settled(page, talks: Conversations):
    """The page once nothing is being answered."""
    for chat in talks.chats():
        for turn in talks.turns(chat.id):
            assert talks.wait(turn.id, 20)
    page.run()
    assert not page.exception
    return page


def shown(page) -> str:
    return "\n".join(str(element.value) for element in (*page.get("html"), *page.markdown))


def press(page, label: str, number: int = 0):
    found = [button for button in page.button if label in button.label]
    assert len(found) > number, [button.label for button in page.button]
    found[number].click().run()
    assert not page.exception
    return page


def asked(page, talks: Conversations, question: str = "Which ship struck the reef?"):
    page.selectbox[0].set_value("oprag")
    page.chat_input[0].set_value(question).run()
    return settled(page, talks)


def test_an_empty_library_says_where_documents_come_from(reading):
    page, _ = reading(text="")
    assert "Add documents" in page.info[0].value


def test_a_question_is_answered_and_its_quote_opens_the_source(reading):
    page, library = reading("The schooner Petrel struck the reef.")
    asked(page, library.conversations)
    assert "Which ship struck the reef?" in shown(page)
    assert "scripted" in shown(page)
    press(page, "1 ·")
    assert library.list()[0].id in page.query_params["source"]
    assert [box.label for box in page.number_input] == ["Budget", "Part"]
    press(page, "Close")
    assert "source" not in page.query_params


def test_not_in_the_document_is_no_answer_and_shows_the_nearest(reading):
    page, library = reading("NOT FOUND")
    asked(page, library.conversations)
    assert any("Not found in this document" in m.value.replace("\\", "") for m in page.markdown)
    assert "nearest to the question" in page.caption[0].value
    assert [b.label for b in page.button if "·" in b.label]


def test_an_answer_in_the_making_shows_its_words_and_can_be_stopped(reading):
    page, library = reading(Reply("The schooner Petrel struck " + "the reef " * 200, word_s=0.05))
    talks = library.conversations
    page.selectbox[0].set_value("oprag")
    page.chat_input[0].set_value("Which ship?").run()
    turn = talks.turns(talks.chats()[0].id)[0]
    end = time.monotonic() + 10
    while "Petrel" not in talks.progress(turn).draft:
        assert time.monotonic() < end
        time.sleep(0.05)
    page.run()
    assert "searched for" in shown(page)
    assert "Petrel" in shown(page)
    press(page, "Stop")
    settled(page, talks)
    assert "You stopped this answer" in page.info[0].value
    assert "Petrel" in shown(page)


def test_a_failure_is_shown_and_asking_again_gives_both_side_by_side(reading):
    page, library = reading(
        ModelUnavailable("the server *went* away"), "The Petrel sank.", "The Petrel struck."
    )
    asked(page, library.conversations)
    assert "went" in page.error[0].value
    press(page, "with oprag")
    settled(page, library.conversations)
    press(page, "with oprag", 1)
    settled(page, library.conversations)
    turns = library.conversations.turns(library.conversations.chats()[0].id)
    assert [turn.state for turn in turns] == ["failed", "done", "done"]
    assert shown(page).count("gt-question") == 1 + shown(page).count(".gt-question")
    assert "1 earlier answer" in [expander.label for expander in page.expander]


def test_chats_are_listed_opened_renamed_and_deleted(reading):
    page, library = reading("The Petrel sank.", "Joss rowed.")
    talks = library.conversations
    asked(page, talks)
    press(page, "New chat")
    asked(page, talks, "Who rowed?")
    assert [chat.title for chat in talks.chats()] == ["Who rowed?", "Which ship struck the reef?"]
    press(page, "Which ship")
    assert "Petrel" in shown(page) or page.query_params["chat"] == talks.chats()[1].id
    page.text_input[0].set_value("The ship").run()
    assert talks.chats()[1].title == "The ship"
    press(page, "Delete this chat")
    assert [chat.title for chat in talks.chats()] == ["Who rowed?"]


def test_who_was_on_another_page_finds_all_as_it_was(reading):
    page, library = reading("The schooner Petrel struck the reef.")
    asked(page, library.conversations)
    press(page, "1 ·")
    page.session_state.elsewhere = True
    page.run()
    del page.session_state.elsewhere
    page.run()
    assert not page.exception
    assert "Which ship struck the reef?" in shown(page)
    assert page.selectbox[0].value == "oprag"
    assert "source" in page.query_params


def test_a_document_that_was_chosen_and_deleted_is_chosen_no_more(reading):
    page, library = reading()
    other = library.add(b"The well was deep.", name="well.txt")
    page.run()
    page.multiselect[0].set_value([other.id]).run()
    library.delete(other.id)
    page.run()
    assert not page.exception
    assert page.multiselect[0].value == []


def test_feedback_is_kept(reading):
    page, library = reading("The Petrel struck the reef.")
    asked(page, library.conversations)
    page.feedback[0].set_value(1).run()
    talks = library.conversations
    assert talks.turns(talks.chats()[0].id)[0].feedback == "good"


def test_a_second_tab_finds_the_chat_and_the_answer_in_the_making(reading):
    page, library = reading(Reply("The schooner Petrel struck the reef.", word_s=0.3))
    page.selectbox[0].set_value("oprag")
    page.chat_input[0].set_value("Which ship?").run()
    other = testing.AppTest.from_function(script, default_timeout=20)
    other.query_params["chat"] = library.conversations.chats()[0].id
    other.run()
    assert "Which ship?" in shown(other)
    assert any(button.label == "Stop" for button in other.button)
    settled(other, library.conversations)
    assert "scripted" in shown(other)


def test_hostile_text_is_only_text(reading):
    page, library = reading(HOSTILE, text=f"{LAMP}\n\n{HOSTILE}\n")
    asked(page, library.conversations, HOSTILE)
    for element in page.get("html"):
        assert "<script" not in str(element.value)
        assert "<img" not in str(element.value)
    for text in (*page.markdown, *page.caption, *page.error, *page.info):
        assert "](" not in text.value.replace("\\]\\(", "")


def test_the_source_is_searched_and_paged(reading):
    page, library = reading(text=LAMP + "\n\n".join(f"Line {i} of the log." for i in range(900)))
    key = library.list()[0].id
    page.query_params["source"] = f"{key}:0-8"
    page.run()
    page.text_input[0].set_value("line 700").run()
    assert "1 of 1" in shown(page)
    assert page.number_input[1].value > 1
    page.text_input[0].set_value("nowhere").run()
    assert "not found" in shown(page)
    before = page.number_input[1].value
    press(page, "Previous part")
    assert page.number_input[1].value == before - 1
    press(page, "Zoom in")
    assert page.session_state.source_zoom == 125


@pytest.mark.parametrize("wanted", [True, False])
def test_short_documents_are_read_ahead_where_that_is_wanted(reading, monkeypatch, wanted):
    monkeypatch.setenv("GISTREE_WARM_UP", str(wanted))
    page, library = reading(*["x"] * 9)
    page.selectbox(key="asked_reader").set_value("full").run()
    ends = time.monotonic() + (5 if wanted else 0.5)
    while time.monotonic() < ends and not library.model.seen:
        time.sleep(0.05)
    assert not page.exception
    assert bool(library.model.seen) is wanted
