import pytest

pytest.importorskip("torch", reason="needs torch; make test-vllm")

from serving.errors import BadOption, UnknownName
from serving.sparse_plugin import check_options, parse, register


def test_one_selector_for_each_phase_and_what_is_dense():
    attention = parse("quest:budget=512,reuse=4; sample:share=0.9 ;dense_layers=1")
    assert (attention.decode.budget, attention.decode.reuse) == (512, 4)
    assert attention.prefill.share == 0.9
    assert attention.dense_layers == 1
    assert attention.least(512) == 1024
    assert parse("from_tokens=9000").least(512) == 9_000
    assert parse("").decode is None


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("magic", UnknownName, "known: critiprefill"),
        ("quest:budgt=4", UnknownName, "known: budget, newest, part, reuse"),
        ("quest:budget=many", BadOption, "quest:budget cannot be 'many'"),
        ("quest:budget=0", BadOption, "at least 1 token"),
        ("quest;hip", BadOption, "two selectors for decode"),
        ("quest;dense_layers=-1", BadOption, "whole number"),
    ],
)
def test_a_mistake_is_said(spec, error, said):
    with pytest.raises(error, match=said):
        parse(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("quest:budget=100", "a budget of 100 tokens is too small for quest.* at least 192 are"),
        ("minference:budget=300,first=200", "which always reads 200; at least 328 are needed"),
        ("critiprefill:segment=0", "segment cannot be 0"),
        ("sample:samples=-2", "samples cannot be -2"),
        ("hip:reuse=0", "reuse cannot be 0"),
    ],
)
def test_what_would_fail_at_the_first_long_prompt_is_said_at_the_start(spec, said):
    with pytest.raises(BadOption, match=said):
        check_options(parse(spec))


def test_without_the_variable_nothing_happens(monkeypatch):
    monkeypatch.delenv("GISTREE_ATTENTION", raising=False)
    register()


def test_with_it_a_mistake_is_said_before_vllm_is_loaded(monkeypatch):
    monkeypatch.setenv("GISTREE_ATTENTION", "magic")
    with pytest.raises(UnknownName):
        register()
