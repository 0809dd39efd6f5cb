"""vLLM's engine is gone: whoever waits for it hears of it. (The real engine: tests/vllm_real.)"""

import itertools
import queue
from types import SimpleNamespace

import pytest

from serving.backends.vllm import Vllm
from serving.errors import BadReply, ModelUnavailable


class Ending:
    """A thread that is seen alive so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def is_alive(self) -> bool:
        self.times -= 1
        return self.times >= 0


class ClientError(Exception):
    """As vLLM's own, which are no ValueErrors."""


def engine(seen_alive, asked=None):
    model = object.__new__(Vllm)
    model.name = "small"
    model._failed = "no memory"
    model._refusals = (ClientError, ValueError)
    model._numbers = itertools.count()
    model._asked = asked or queue.SimpleQueue()
    model._thread = Ending(seen_alive)
    return model


class Answering(queue.SimpleQueue):
    """Says something to a request as soon as it comes."""

    def __init__(self, *said) -> None:
        self.said = said

    def put(self, request) -> None:
        for each in self.said:
            request.said.put(each)


SAMPLING = SimpleNamespace(clone=lambda: None)


@pytest.mark.parametrize("seen_alive", [0, 1, 2])
def test_an_engine_that_ends_is_told_whenever_it_ends(seen_alive, monkeypatch):
    monkeypatch.setattr("serving.backends.vllm._LOOKS_EVERY_S", 0.01)
    with pytest.raises(ModelUnavailable, match="small has ended: no memory"):
        list(engine(seen_alive)._outputs([1], SAMPLING))


def test_what_was_said_before_the_end_is_heard():
    last = SimpleNamespace(finished=True)
    assert list(engine(1, Answering(last))._outputs([1], SAMPLING)) == [last]


@pytest.mark.parametrize("refusal", [ValueError, ClientError])
def test_a_refused_request_is_no_outage(refusal):
    model, said = engine(1), queue.SimpleQueue()

    def refuse(*_):
        raise refusal("stop cannot be empty")

    model._engine = SimpleNamespace(add_request=refuse)
    running = {}
    model._add(SimpleNamespace(name="0", prompt=[1], sampling=None, said=said), running)
    assert not running
    assert isinstance(said.get_nowait(), BadReply)
