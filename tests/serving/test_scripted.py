import time

import pytest

from serving.errors import ContextOverflow, ModelUnavailable
from serving.model import LanguageModel, Message, Usage
from serving.scripted import Reply, ScriptedLLM

ASK = [Message("user", "Who lit the lamp?")]
SCHEMA = {"type": "object", "required": ["who"]}


def test_replies_come_in_order_and_messages_are_kept():
    model = ScriptedLLM(["Mira did.", lambda messages: messages[0].content.upper()])
    assert isinstance(model, LanguageModel)
    first = model.complete(ASK, max_tokens=10)
    assert (first.text, first.finish, first.usage) == ("Mira did.", "stop", Usage(4, 0, 2, 1))
    assert model.complete(ASK, max_tokens=10).text == "WHO LIT THE LAMP?"
    assert model.seen == [tuple(ASK), tuple(ASK)]
    with pytest.raises(AssertionError, match="no reply to call 3"):
        model.complete(ASK, max_tokens=10)


def test_a_reply_is_cut_by_its_limit_and_by_a_stop():
    model = ScriptedLLM(["one two three", "one two three"])
    cut = model.complete(ASK, max_tokens=2)
    assert (cut.text, cut.finish) == ("one two ", "length")
    assert model.complete(ASK, max_tokens=9, stop=[" three", "four"]).text == "one two"


def test_replies_that_go_wrong():
    model = ScriptedLLM(
        [
            ModelUnavailable("away"),
            Reply("half of", finish="length"),
            Reply("one two three", breaks_after=2),
        ]
    )
    with pytest.raises(ModelUnavailable, match="away"):
        model.complete(ASK, max_tokens=9)
    assert model.complete(ASK, max_tokens=9).finish == "length"
    stream = model.stream(ASK, max_tokens=9)
    assert [next(stream), next(stream)] == ["one ", "two "]
    with pytest.raises(ModelUnavailable, match="goes away"):
        next(stream)


def test_a_slow_reply():
    began = time.perf_counter()
    ScriptedLLM([Reply("a b c", word_s=0.02)]).complete(ASK, max_tokens=9)
    assert time.perf_counter() - began >= 0.06


@pytest.mark.parametrize(("text", "complaint"), [("Mira", "asks for JSON"), ("{}", "without")])
def test_a_script_that_breaks_its_schema_is_a_mistake_in_the_test(text, complaint):
    with pytest.raises(AssertionError, match=complaint):
        ScriptedLLM([text]).complete(ASK, max_tokens=9, schema=SCHEMA)


def test_a_reply_cut_off_need_not_follow_its_schema():
    model = ScriptedLLM([Reply('{"who": "Mi', finish="length"), '{"who": "Mira"}'])
    assert model.complete(ASK, max_tokens=9, schema=SCHEMA).finish == "length"
    assert model.complete(ASK, max_tokens=9, schema=SCHEMA).text == '{"who": "Mira"}'


def test_the_window_is_kept():
    model = ScriptedLLM(["x"], context_window=8)
    with pytest.raises(ContextOverflow, match="has 4 tokens, its reply may take 5"):
        model.complete(ASK, max_tokens=5)
    assert model.complete(ASK, max_tokens=4).text == "x"


def test_choices():
    model = ScriptedLLM([], choices=[1])
    choice = model.choose(ASK, ["Joss", "Mira", "Orlov"])
    assert choice.best == 1
    assert choice.log_probs[1] > choice.log_probs[0]
    with pytest.raises(AssertionError, match="no choice"):
        model.choose(ASK, ["a", "b"])
    with pytest.raises(ValueError, match="at least two"):
        model.choose(ASK, ["a"])
    model.close()
    assert model.closed
