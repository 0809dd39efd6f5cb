import pytest

from serving.asking import ask, field, pick, says_yes
from serving.errors import BadReply, ContextOverflow, ModelUnavailable
from serving.model import Message
from serving.scripted import Reply, ScriptedLLM

PROMPT = [Message("system", "Reply with a number."), Message("user", "How many?")]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def small(reply):
    n = field(reply, "n", int)
    if n > 9:
        raise BadReply("n must be at most 9")
    return n


def asked(*replies):
    model = ScriptedLLM(replies)
    return model, ask(model, PROMPT, schema=SCHEMA, read=small, max_tokens=8)


def test_a_good_reply_is_asked_for_once():
    model, result = asked('{"n": 3}')
    assert (result.value, result.why, result.usage.calls) == (3, "", 1)
    assert len(model.seen) == 1


def test_a_failure_is_quoted_to_the_model_and_both_attempts_are_counted():
    model, result = asked('{"n": 70}', '{"n": 7}')
    assert result.value == 7
    assert result.usage.calls == 2
    assert [m.role for m in model.seen[1]] == ["system", "user", "assistant", "user"]
    assert list(model.seen[1][:2]) == PROMPT
    assert model.seen[1][2].content == '{"n": 70}'
    assert "n must be at most 9" in model.seen[1][3].content


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"n": 70}', "at most 9"),
        (Reply("", finish="length"), "empty"),
        (Reply('{"n": ', finish="length"), "cut off"),
        (Reply("[" * 100_000, finish="length"), "cut off"),
    ],
)
def test_the_second_failure_is_the_last(reply, why):
    model, result = asked(reply, reply, '{"n": 1}')
    assert result.value is None
    assert why in result.why
    assert len(model.seen) == 2


def test_a_model_that_cannot_be_asked_is_told_not_raised():
    _, result = asked(ModelUnavailable("the server hung up"))
    assert (result.value, result.why) == (None, "the server hung up")
    model = ScriptedLLM(['{"n": 1}'], context_window=10)
    overflow = ask(model, PROMPT, schema=SCHEMA, read=small, max_tokens=8)
    assert overflow.value is None
    assert "the window is 10" in overflow.why


def test_the_first_failure_is_told_where_the_retry_no_longer_fits():
    model = ScriptedLLM(['{"n": 70}'], context_window=16)
    result = ask(model, PROMPT, schema=SCHEMA, read=small, max_tokens=8)
    assert "at most 9" in result.why
    assert result.usage.calls == 1


class WithoutLogProbs(ScriptedLLM):
    """As servers are that give no log-probabilities."""

    def choose(self, messages, options):
        raise BadReply("no log-probabilities here")


def test_picking_is_by_log_probability_or_else_by_writing():
    scored = pick(ScriptedLLM([], choices=[1]), PROMPT, ["yes", "no"])
    assert scored.value is not None
    assert scored.value[1] > scored.value[0]
    written = pick(WithoutLogProbs(['{"choice": "no"}']), PROMPT, ["yes", "no"])
    assert written.value == (-20.0, 0.0)
    assert pick(WithoutLogProbs(['{"choice": "hm"}'] * 2), PROMPT, ["yes", "no"]).value is None


def test_yes_is_a_probability_whatever_its_first_letter():
    assert says_yes(ScriptedLLM([], choices=[0]), PROMPT).value > 0.9
    assert says_yes(ScriptedLLM([], choices=[1]), PROMPT).value > 0.9
    assert says_yes(ScriptedLLM([], choices=[3]), PROMPT).value < 0.1
    assert says_yes(WithoutLogProbs(['{"choice": "Yes"}']), PROMPT).value > 0.9
    assert says_yes(WithoutLogProbs(['{"choice": "hm"}'] * 2), PROMPT).value is None


def test_picking_says_why_it_could_not():
    class Full(ScriptedLLM):
        def choose(self, messages, options):
            raise ContextOverflow(12, 10)

    assert "window is 10" in pick(Full([]), PROMPT, ["yes", "no"]).why
