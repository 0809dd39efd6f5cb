import pytest

from serving.scripted import Reply, ScriptedLLM
from serving.speed import measure


def test_pace_is_tokens_by_seconds():
    model = ScriptedLLM([Reply("one two three four five six", word_s=0.05)])
    pace = measure(model, prompt_tokens=300)
    tokens = model.count_prompt(model.seen[0])
    assert 200 <= tokens <= 320
    assert pace.prompt_tokens_per_s == pytest.approx(tokens / 0.05, rel=0.5)
    assert pace.completion_tokens_per_s == pytest.approx(20, rel=0.5)


def test_each_time_it_is_another_text():
    model = ScriptedLLM(["a b", "a b"])
    measure(model)
    measure(model)
    first, second = (messages[0].content for messages in model.seen)
    assert first[:20] != second[:20]


def test_a_model_that_says_nothing_has_no_writing_pace():
    pace = measure(ScriptedLLM([""]))
    assert pace.prompt_tokens_per_s > 0
    assert pace.completion_tokens_per_s == 0


def test_a_real_model(smollm):
    pace = measure(smollm)
    assert 5 < pace.prompt_tokens_per_s < 100_000
    assert 1 < pace.completion_tokens_per_s < 10_000
