"""What questions begin with is read ahead, and the first one finds it in the cache."""

import threading
import time

import pytest
from door import model_cache

from app.library import Library
from app.models import open_model
from app.settings import Settings
from app.warmer import Warmer
from serving.errors import ModelUnavailable
from serving.model import Usage

TINY = "smollm2-135m-instruct"


@pytest.mark.slow
def test_the_first_question_finds_the_document_in_the_cache(tmp_path, lamp):
    from fakes import HashingEmbedder

    settings = Settings(library=str(tmp_path / "library"), model=TINY, models=model_cache())
    with Library(
        settings=settings, model=open_model(settings), embedder=HashingEmbedder()
    ) as library:
        library.add(lamp)
        warmed = library.warm(reader="full")
        assert warmed.prompt_tokens > 200
        assert warmed.cached_tokens == 0
        answer = library.ask("Who rowed out?", reader="full")
        assert answer.usage.cached_tokens > 0.8 * warmed.prompt_tokens
        assert library.warm(reader="oprag") == Usage()


class Slow:
    """A library that reads ahead when it is let."""

    def __init__(self, error=None):
        self.asked, self.error, self.goes = [], error, threading.Event()

    def warm(self, *, documents, reader, budget_tokens):
        self.asked.append((documents, reader, budget_tokens))
        self.goes.wait(5)
        if self.error:
            raise self.error
        return Usage()


def until(true):
    ends = time.monotonic() + 5
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_same_is_read_ahead_once_and_of_what_came_meanwhile_the_latest():
    library = Slow()
    warmer = Warmer(library)
    for _ in range(3):
        warmer.begin(("a",), "full", None)
    until(lambda: library.asked)
    for document in "bcd":
        warmer.begin((document,), "full", None)
    library.goes.set()
    until(lambda: not warmer._works)
    assert library.asked == [(("a",), "full", None), (("d",), "full", None)]


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), RuntimeError("no memory")])
def test_what_cannot_be_read_ahead_ends_nothing_and_may_be_tried_again(error):
    library = Slow(error)
    library.goes.set()
    warmer = Warmer(library)
    for reader in ("full", "full", "auto"):
        warmer.begin(None, reader, 300)
        until(lambda: not warmer._works)
    assert [reader for _, reader, _ in library.asked] == ["full", "full", "auto"]
