"""``gistree memory`` as a person meets it: what it takes, and what a kill leaves of it."""

import re
import signal
import time

import pytest
from door import Door, model_cache
from fake_server import Answer, FakeServer, events

NUM_WORDS = 6_000


class Slowly(Answer):
    """An answer that takes its time, so that a kill falls between two."""

    def bytes(self):
        time.sleep(0.1)
        return super().bytes()


@pytest.fixture
def server():
    fake = FakeServer()
    fake.say("/v1/models", {"object": "list", "data": [{"id": "parrot", "object": "model"}]})
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None}
    fake.say("/v1/chat/completions", Slowly(events("The keeper wrote.", usage=usage)))
    yield fake
    fake.close()


@pytest.fixture
def log_book(tmp_path, server):
    """The command line over a library of one document that is told in many parts."""
    days = (
        f"On day {n} the keeper of light {7 * n} wrote that the wind came from bay {3 * n}."
        for n in range(NUM_WORDS // 16)
    )
    file = tmp_path / "log-book.txt"
    file.write_text("\n\n".join(days), encoding="utf-8")
    door = Door(tmp_path, model_cache(), {"GISTREE_MODEL": server.url})
    assert door("add", file).code == 0
    return door


def calls_to_make(door, *kind):
    said = door("memory", "log-book", *kind, "--estimate", "--json")
    assert said.code == 0
    return said.json["calls"]


def test_what_a_memory_takes_is_said_without_making_any_of_it(log_book, server):
    said = log_book("memory", "log-book", "--estimate")
    calls = int(re.match(r"at most (\d+) calls of the model, about [\d,]+ tokens", said.out)[1])
    assert calls == calls_to_make(log_book) > 5
    assert calls_to_make(log_book, "tree") > calls
    assert not server.asked("/v1/chat/completions")


@pytest.mark.parametrize("kind", ["gists", "tree"])
def test_a_memory_that_is_killed_goes_on_where_it_was(log_book, server, kind):
    before = calls_to_make(log_book, kind)
    process = log_book.start("memory", "log-book", kind)
    for line in process.stderr:
        said = re.search(rb"gists: (\d+) of", line)
        if said and int(said[1]) >= 3:
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    finished = int(said[1])
    assert process.returncode == -signal.SIGKILL
    left = calls_to_make(log_book, kind)
    assert 0 < left <= before - finished
    asked = len(server.asked("/v1/chat/completions"))
    assert log_book("memory", "log-book", kind).code == 0
    more = len(server.asked("/v1/chat/completions")) - asked
    assert more == left if kind == "gists" else 0 < more <= left  # a tree's calls are a bound
    assert calls_to_make(log_book, kind) == 0
