"""vLLM in this process."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.library import Library
from serving.backends.vllm import Vllm
from serving.errors import BadOption, BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import LanguageModel, Message

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("vllm", reason="needs vLLM; make test-vllm")
from vllm import SamplingParams  # noqa: E402

MODEL = Path(
    os.environ.get("GISTREE_VLLM_MODEL", "~/.cache/gistree/models/smollm2-135m-instruct-hf")
).expanduser()
STORY = "The schooner Petrel struck the reef in March, and Joss rowed out to her. " * 40
ASK = [Message("system", "Be brief."), Message("user", f"{STORY}\nWho rowed out?")]


@pytest.fixture(scope="module")
def model():
    if not MODEL.is_dir():
        pytest.skip(f"there is no model folder {MODEL}; make test-vllm makes it")
    model = Vllm(
        str(MODEL), ability="tiny", context_window=2_048, dtype="float32", enforce_eager=True
    )
    yield model
    model.close()
    with pytest.raises(ModelUnavailable, match="has ended"):
        model.complete(ASK, max_tokens=1)


def test_it_is_a_language_model_that_counts_by_its_own_tokenizer(model):
    assert isinstance(model, LanguageModel)
    assert model.context_window == 2_048
    assert model.count_tokens("Joss rowed out.") > 3
    assert model.count_prompt(ASK) > model.count_tokens(STORY)


def test_a_reply_streams_is_the_same_again_and_its_prompt_comes_from_the_cache(model):
    stream, pieces = model.stream(ASK, max_tokens=12), []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            once = end.value
            break
    twice = model.complete(ASK, max_tokens=12)
    assert len(pieces) > 1
    assert "".join(pieces) == once.text == twice.text
    assert once.usage.prompt_tokens == model.count_prompt(ASK)
    assert once.usage.completion_tokens == 12
    assert once.finish == "length"
    assert twice.usage.cached_tokens > 0.8 * twice.usage.prompt_tokens


def test_many_at_once_are_computed_together_and_each_is_as_if_alone(model):
    asks = [[Message("user", f"{STORY}\nCount from {n}:")] for n in range(12)]
    alone = [model.complete(ask, max_tokens=6).text for ask in asks]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda ask: model.complete(ask, max_tokens=6).text, asks))
    assert together == alone


def test_a_schema_binds_the_reply(model):
    schema = {
        "type": "object",
        "properties": {"part": {"enum": ["first", "last"]}},
        "required": ["part"],
        "additionalProperties": False,
    }
    assert json.loads(model.complete(ASK, max_tokens=40, schema=schema).text)["part"]


@pytest.mark.parametrize("options", [["yes", "no"], ["by the sea", "in the high tower", "Joss"]])
def test_a_choice_costs_no_new_prompt_and_is_that_of_whole_texts(model, options):
    model.complete(ASK, max_tokens=1)
    choice = model.choose(ASK, options)
    assert choice.usage.cached_tokens > 0.8 * model.count_prompt(ASK)
    ids = [tuple(model._ids(option)) for option in options]
    whole = model._echoed(model._prompt(ASK), ids)
    assert choice.log_probs == pytest.approx(whole.log_probs, abs=1e-3)


def test_closing_the_stream_ends_the_work(model):
    stream = model.stream(ASK, max_tokens=1_000, temperature=1.0)
    next(stream)
    stream.close()
    ends = time.monotonic() + 20
    while model._engine.has_unfinished_requests():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_prompt_past_the_window_harms_no_other(model):
    with pytest.raises(ContextOverflow, match="the window is 2,048"):
        model.complete([Message("user", STORY * 4)], max_tokens=8)
    assert model.complete(ASK, max_tokens=2).usage.completion_tokens == 2


def test_a_request_that_cannot_be_is_refused_and_harms_no_other(model):
    with pytest.raises(BadReply, match="refuses"):
        model.complete(ASK, max_tokens=4, temperature=0.5, stop=[""])
    with pytest.raises(BadOption, match="no JSON schema"):
        model.complete(ASK, max_tokens=4, schema={"type": "nothing"})
    with pytest.raises(BadReply, match="refuses"):  # by the engine, once it is asked
        model.complete(ASK, max_tokens=4, schema=_nested(80))
    with pytest.raises((BadOption, BadReply), match=r"too deep|refuses"):  # by what stack is left
        model.complete(ASK, max_tokens=4, schema=_nested(200))
    with pytest.raises(BadReply, match="refuses"):  # by the engine, in its own thread
        model._whole([10**8], SamplingParams(max_tokens=1))
    assert model.complete(ASK, max_tokens=2).usage.completion_tokens == 2


def test_a_library_answers_with_it(model, tmp_path):
    with Library(tmp_path / "library", model=model) as library:
        library.add(STORY.encode(), name="petrel.txt")
        library.engines.close = lambda: None  # the next test wants the model, too
        assert library.ask("Who rowed out to the Petrel?", reader="oprag").usage.calls >= 1


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ModelNotFound, match="cannot load"):
        Vllm(str(tmp_path))


def _nested(times: int) -> dict[str, object]:
    """The schema of a list of lists of lists."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(times):
        schema = {"type": "array", "items": schema}
    return schema
