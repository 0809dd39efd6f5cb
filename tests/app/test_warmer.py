"""What questions begin with is read ahead, and the first one finds it in the cache."""

import threading
import time
from dataclasses import replace

import pytest
from door import model_cache
from fakes import HashingEmbedder

from app.library import Library
from app.models import open_model
from app.settings import Settings
from app.warmer import ReadAhead, Warmer, read_ahead
from serving.errors import ModelUnavailable
from serving.model import Message
from serving.scripted import ScriptedLLM

TINY = "smollm2-135m-instruct"


@pytest.mark.slow
def test_the_first_question_finds_the_document_in_the_cache(tmp_path, lamp):
    settings = Settings(library=str(tmp_path / "library"), model=TINY, models=model_cache())
    with Library(
        settings=settings, model=open_model(settings), embedder=HashingEmbedder()
    ) as library:
        library.add(lamp)
        warmed = library.warm(reader="full").usage
        assert warmed.prompt_tokens > 200
        assert warmed.cached_tokens == 0
        answer = library.ask("Who rowed out?", reader="full")
        assert answer.usage.cached_tokens > 0.8 * warmed.prompt_tokens
        assert library.warm(reader="oprag") == ReadAhead()


@pytest.mark.slow
def test_a_long_document_is_read_in_parts_that_cost_no_more_than_the_whole(tmp_path):
    model = open_model(Settings(model=TINY, models=model_cache()))
    text = " ".join(f"On day {n} the keeper of light {n * 7} wrote a line." for n in range(220))
    prompt = [Message("system", "You read."), Message("user", text)]
    read = read_ahead(model, prompt, lambda: False)
    assert read.whole
    assert read.usage.calls > 2
    computed = read.usage.prompt_tokens - read.usage.cached_tokens
    assert computed < 1.05 * model.count_prompt(prompt)
    again = model.complete([*prompt[:1], Message("user", f"{text} Who?")], max_tokens=1).usage
    model.close()
    assert again.cached_tokens > 0.98 * again.prompt_tokens - 20


def counting(cached):
    """A model that says of each part how much it had in its cache."""

    class Counting(ScriptedLLM):
        def complete(self, messages, **options):
            done = super().complete(messages, **options)
            return replace(done, usage=replace(done.usage, cached_tokens=cached))

    return Counting(["x"] * 9)


LONG = [Message("system", "You read."), Message("user", "one two three four five " * 1_000)]


def test_a_question_goes_before_what_is_left_to_read():
    model, looks = counting(cached=1_000), iter([False, False, True])
    read = read_ahead(model, LONG, lambda: next(looks))
    assert not read.whole
    assert read.usage.calls == len(model.seen) == 2
    first, second = (call[-1].content for call in model.seen)
    assert second.startswith(first)
    assert len(second) < len(LONG[-1].content)


def test_a_model_that_keeps_no_prompts_reads_nothing_over_and_over():
    model = counting(cached=0)
    assert read_ahead(model, LONG, lambda: False).whole
    assert len(model.seen) == 3
    assert model.seen[-1] == tuple(LONG)


def test_a_library_reads_nothing_ahead_while_somebody_asks(tmp_path, lamp):
    model = ScriptedLLM([])
    settings = Settings(library=str(tmp_path / "library"), models=tmp_path / "models")
    with Library(settings=settings, model=model, embedder=HashingEmbedder()) as library:
        library.add(lamp)
        with library.courtesy.asking():
            assert not library.warm(reader="full").whole
    assert not model.seen


class Slow:
    """A library that reads ahead when it is let."""

    def __init__(self, error=None, whole=True):
        self.asked, self.error, self.whole, self.goes = [], error, whole, threading.Event()

    def warm(self, *, documents, reader, budget_tokens):
        self.asked.append((documents, reader, budget_tokens))
        self.goes.wait(5)
        if self.error:
            raise self.error
        return ReadAhead(whole=self.whole)


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


def test_what_gave_way_to_a_question_is_tried_again():
    library = Slow(whole=False)
    library.goes.set()
    warmer = Warmer(library)
    for _ in range(2):
        warmer.begin(None, "full", None)
        until(lambda: not warmer._works)
    assert len(library.asked) == 2
