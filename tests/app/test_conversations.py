"""Chats: answered by a thread of their own, stopped, killed, kept, and empty of what is deleted."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.conversations import answer_in
from memory.errors import ChatNotFound
from serving.errors import ModelUnavailable, UnknownName
from serving.scripted import Reply

SLOW = Reply("The schooner Petrel struck the reef and sank in the storm.", word_s=0.15)


def until(condition, timeout_s: float = 10.0):
    """Waits until something holds, and fails where it never does."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never came true")


def ask(talks, question="Which ship struck the reef?", **other):
    turn = talks.ask(other.pop("chat", None) or talks.begin(), question, **other)
    assert talks.wait(turn.id, 20)
    return talks.turn(turn.id)


def test_a_turn_ends_with_its_answer_and_outlives_the_library(opened, lamp, tmp_path):
    library = opened("The schooner Petrel struck the reef.")
    library.add(lamp)
    turn = ask(library.conversations)
    answer = answer_in(turn)
    assert turn.state == "done"
    assert answer.text == "The schooner Petrel struck the reef."
    assert answer.claims[0].span.of(answer.text) == answer.text
    assert "Petrel" in answer.citations[answer.claims[0].citations[0]].quote
    steps = ["Searched", "Assembled", "Drafted", "Verified", "Confirmed"]
    assert [step["step"] for step in turn.steps] == steps
    library.close()
    again = opened().conversations
    assert [chat.title for chat in again.chats()] == ["Which ship struck the reef?"]
    assert answer_in(again.turns(again.chats()[0].id)[0]) == answer


def test_who_looks_in_mid_answer_sees_the_steps_and_the_words_so_far(opened, lamp):
    library = opened(SLOW)
    library.add(lamp)
    talks = library.conversations
    turn = talks.ask(talks.begin(), "Which ship?")
    seen = until(lambda: (p := talks.progress(turn)) and "schooner" in p.draft and p)
    assert [step["step"] for step in seen.steps] == ["Searched", "Assembled"]
    assert "sank" not in seen.draft
    assert talks.wait(turn.id, 20)
    assert talks.progress(talks.turn(turn.id)) is None


def test_stop_keeps_what_is_there_and_lets_the_model_go(opened, lamp):
    library = opened(SLOW)
    library.add(lamp)
    talks = library.conversations
    turn = talks.ask(talks.begin(), "Which ship?")
    until(lambda: "Petrel" in talks.progress(turn).draft)
    talks.stop(turn.id)
    stopped = talks.turn(turn.id)
    assert stopped.state == "stopped"
    assert stopped.draft.startswith("The schooner Petrel")
    assert stopped.steps
    assert talks.wait(turn.id, 2)
    assert talks.turn(turn.id) == stopped


def test_a_failure_is_told_in_words_and_the_next_question_works(opened, lamp):
    library = opened(ModelUnavailable("the server went away"), "The schooner Petrel.")
    library.add(lamp)
    turn = ask(library.conversations)
    assert (turn.state, turn.error) == ("failed", "the server went away")
    again = library.conversations.again(turn)
    assert library.conversations.wait(again.id, 20)
    done = library.conversations.turn(again.id)
    assert (done.state, done.again_of) == ("done", turn.id)


def test_what_cannot_be_asked_is_said_at_once(opened, lamp):
    library = opened()
    library.add(lamp)
    talks = library.conversations
    with pytest.raises(ValueError, match="at least one word"):
        talks.ask(talks.begin(), " ")
    with pytest.raises(UnknownName, match="nosuch"):
        talks.ask(talks.begin(), "Who?", reader="nosuch")
    with pytest.raises(ChatNotFound):
        talks.ask("nosuch", "Who?")


def test_a_deleted_document_leaves_nothing_in_chats(opened, lamp, well, tmp_path):
    library = opened("The schooner Petrel struck the reef.", "The well was forty feet deep.")
    first, second = library.add(lamp), library.add(well)
    of_lamp = ask(library.conversations, documents=[first.id])
    of_well = ask(library.conversations, "How deep was the well?", documents=[second.id])
    library.delete(first.id)
    gone = library.conversations.turn(of_lamp.id)
    assert (gone.state, gone.steps, gone.draft, gone.answer) == ("withdrawn", (), "", None)
    assert gone.question == of_lamp.question
    assert library.conversations.turn(of_well.id) == of_well
    library.close()
    for file in (tmp_path / "library").rglob("*"):
        if file.is_file():
            assert b"schooner" not in file.read_bytes(), file


def test_a_document_deleted_in_mid_answer_leaves_nothing_either(opened, lamp, well):
    library = opened(SLOW)
    library.add(well)
    entry = library.add(lamp)
    talks = library.conversations
    turn = talks.ask(talks.begin(), "Which ship?", documents=[entry.id])
    until(lambda: "Petrel" in talks.progress(turn).draft)
    library.delete(entry.id)
    assert talks.wait(turn.id, 20)
    assert talks.turn(turn.id).state == "withdrawn"
    assert talks.turn(turn.id).answer is None


def test_a_deleted_chat_is_gone_and_its_answer_stops(opened, lamp):
    library = opened(SLOW)
    library.add(lamp)
    talks = library.conversations
    turn = talks.ask(talks.begin(), "Which ship?")
    until(lambda: talks.progress(turn).draft)
    talks.delete(turn.chat_id)
    assert talks.chats() == []
    assert talks.wait(turn.id, 3)
    with pytest.raises(ChatNotFound):
        talks.turn(turn.id)


def test_feedback_is_kept(opened, lamp):
    library = opened("The schooner Petrel.")
    library.add(lamp)
    turn = ask(library.conversations)
    library.conversations.rate(turn.id, "bad")
    assert library.conversations.turn(turn.id).feedback == "bad"


def test_closing_the_library_stops_its_answers(opened, lamp):
    library = opened(SLOW)
    library.add(lamp)
    turn = library.conversations.ask(library.conversations.begin(), "Which ship?")
    until(lambda: library.conversations.progress(turn).draft)
    library.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("gistree-answer")]
    assert opened().conversations.turn(turn.id).state == "stopped"


KILLED = """
import sys, time
sys.path[:0] = [{root!r}, {fakes!r}]
from app.library import Library
from app.settings import Settings
from fakes import HashingEmbedder
from serving.scripted import Reply, ScriptedLLM
words = Reply("The schooner Petrel struck the reef." + " It sank." * 400, word_s=0.1)
library = Library({place!r}, settings=Settings(pruner="none"), model=ScriptedLLM([words]),
                  embedder=HashingEmbedder())
library.add({lamp!r})
turn = library.conversations.ask(library.conversations.begin(), "Which ship?")
while "Petrel" not in library.conversations.turn(turn.id).draft:
    time.sleep(0.05)
print(turn.id, flush=True)
time.sleep(60)
"""


def test_a_server_killed_in_mid_answer_leaves_the_turn_interrupted(opened, lamp, tmp_path):
    root = Path(__file__).parents[2]
    code = KILLED.format(
        root=str(root),
        fakes=str(root / "tests" / "retrieval"),
        place=str(tmp_path / "library"),
        lamp=str(lamp),
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        turn_id = server.stdout.readline().decode().strip()
        talks = opened("The schooner Petrel.").conversations
        turn = talks.turn(turn_id)
        assert "Petrel" in talks.progress(turn).draft  # another process sees it being answered
        assert talks.turns(turn.chat_id)[0].state == "running"
        os.kill(server.pid, signal.SIGKILL)
    turn = talks.turns(turn.chat_id)[0]
    assert turn.state == "interrupted"
    assert "Petrel" in turn.draft
    again = talks.again(turn)
    assert talks.wait(again.id, 20)
    assert talks.turn(again.id).state == "done"


def test_many_writers_at_once_lose_nothing(opened, lamp):
    library = opened(*["The schooner Petrel struck the reef."] * 12)
    key = library.add(lamp).id
    talks = library.conversations
    chat = talks.begin()
    turns = [talks.ask(chat, f"Which ship? {n}", reader="oprag") for n in range(12)]
    for n in range(40):
        library.tag(key, str(n))
        talks.rename(chat, f"Chat {n}")
        talks.rate(turns[n % 12].id, "good")
    assert all(talks.wait(turn.id, 30) for turn in turns)
    assert {turn.state for turn in talks.turns(chat)} == {"done"}
