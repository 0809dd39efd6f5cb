"""Which language model answers where the person leaves it open, and where not."""

import json
import re
from contextlib import nullcontext

import pytest

from app import models
from app.models import READING_PACE, choose_model, ensure_models, keep_pace
from app.settings import Settings
from serving.catalogue import card
from serving.errors import FetchFailed, ModelNotFound, UnknownName

TINY, TINY_BIG, SMALL = (
    "smollm2-135m-instruct",
    "qwen2.5-coder-0.5b-instruct",
    "qwen2.5-coder-1.5b-instruct",
)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """An empty model cache and no server on the usual ports."""
    monkeypatch.setattr(models, "USUAL_SERVERS", {})
    return Settings(models=tmp_path, model="auto")


def install(settings: Settings, *names: str) -> None:
    """Files of the right names and sizes, with nothing in them."""
    for name in names:
        for file in card(name).files:
            path = settings.models / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as empty:
                empty.truncate(file.size_bytes)


def test_nothing_at_hand_says_how_to_get_one(settings):
    with pytest.raises(ModelNotFound, match=f"gistree models fetch {re.escape(SMALL)}"):
        choose_model(settings)


def test_the_ablest_in_the_cache_then_the_largest(settings):
    install(settings, TINY)
    assert choose_model(settings).name == TINY
    install(settings, TINY_BIG)
    assert choose_model(settings).name == TINY_BIG
    install(settings, SMALL)
    assert choose_model(settings).name == SMALL


def test_an_abler_one_that_reads_too_slowly_here_stands_back(settings):
    install(settings, TINY, SMALL)
    keep_pace(settings, SMALL, READING_PACE - 0.1, 5.0)
    assert choose_model(settings).name == TINY
    keep_pace(settings, SMALL, READING_PACE, 5.0)
    assert choose_model(settings).name == SMALL


def test_where_all_are_slow_the_ablest_answers_all_the_same(settings):
    install(settings, TINY, SMALL)
    for name in (TINY, SMALL):
        keep_pace(settings, name, 1.0, 1.0)
    assert choose_model(settings).name == SMALL


def test_a_server_on_a_usual_port_comes_before_the_cache(settings, model_server, monkeypatch):
    install(settings, SMALL)
    usual = {"nobody": "http://127.0.0.1:9", "parrots": model_server.url}
    monkeypatch.setattr(models, "USUAL_SERVERS", usual)
    chosen = choose_model(settings)
    assert (chosen.kind, chosen.where, chosen.name) == ("server", model_server.url, "parrot")
    assert "parrots" in chosen.why


@pytest.mark.parametrize(
    "reply", ["<html>", {"data": []}, {"data": None}, [], {"data": [{}]}, "[" * 100_000]
)
def test_what_answers_there_but_serves_no_model_is_passed_over(
    settings, model_server, monkeypatch, reply
):
    install(settings, TINY)
    listed = model_server.answers["/v1/models"]
    monkeypatch.setattr(models, "USUAL_SERVERS", {"web page": model_server.url})
    model_server.say("/v1/models", reply)
    try:
        assert choose_model(settings).name == TINY
    finally:
        model_server.answers["/v1/models"] = listed


def test_what_the_person_set_comes_first(settings, model_server, monkeypatch):
    install(settings, TINY, SMALL)
    monkeypatch.setattr(models, "USUAL_SERVERS", {"parrots": model_server.url})
    set_to = {"model": TINY, "models": settings.models}
    assert choose_model(Settings(**set_to)).name == TINY
    named = choose_model(Settings(model="https://host:8000/v1#big", models=settings.models))
    assert (named.kind, named.where, named.name) == ("server", "https://host:8000/v1", "big")
    file = choose_model(Settings(model="~/mine.gguf", models=settings.models))
    assert file.kind == "file"
    assert file.where.endswith("/mine.gguf")
    assert "~" not in file.where


def test_a_name_that_cannot_answer_is_refused(settings):
    with pytest.raises(UnknownName, match="known: gpt-oss-20b"):
        choose_model(Settings(model="gpt-9", models=settings.models))
    with pytest.raises(UnknownName, match="no language model is named 'minilm-l6-v2'") as error:
        choose_model(Settings(model="minilm-l6-v2", models=settings.models))
    assert "minilm-l6-v2" not in error.value.known
    with pytest.raises(ModelNotFound, match=f"gistree models fetch {SMALL}"):
        choose_model(Settings(model=SMALL, models=settings.models))


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"a": 3}', f'{{"{SMALL}": {{}}}}'])
def test_a_damaged_file_of_paces_is_as_none(settings, content):
    install(settings, SMALL)
    (settings.models / "pace.json").write_text(content)
    assert choose_model(settings).name == SMALL
    keep_pace(settings, SMALL, 2.0, 1.0)
    assert json.loads((settings.models / "pace.json").read_text())[SMALL] == {
        "prompt_tokens_per_s": 2.0,
        "completion_tokens_per_s": 1.0,
    }


def test_what_is_needed_is_fetched_and_the_smallest_where_no_other_comes(settings, monkeypatch):
    asked: list[str] = []

    def fetch(name, folder, *, on_progress):
        asked.append(name)
        if name == SMALL:
            raise FetchFailed("no network")
        install(settings, name)

    monkeypatch.setattr(models, "fetch", fetch)
    said: list[str] = []
    ensure_models(settings, say=said.append, bar=lambda _: nullcontext(lambda *_: None))
    assert asked == ["minilm-l6-v2-int8", SMALL, TINY]
    assert "no network" in "".join(said)
    assert "will often find nothing" in "".join(said)
    asked.clear()
    ensure_models(settings, say=said.append, bar=lambda _: nullcontext(lambda *_: None))
    assert asked == [], "nothing is fetched twice"


def test_vllm_in_this_process_is_named_like_any_other(tmp_path):
    known = choose_model(Settings(model="vllm:qwen3-8b", models=tmp_path))
    assert (known.kind, known.where, known.name) == ("vllm", "Qwen/Qwen3-8B", "qwen3-8b")
    assert known.card is not None
    other = choose_model(Settings(model="vllm:/srv/models/mine", models=tmp_path))
    assert (other.kind, other.where, other.card) == ("vllm", "/srv/models/mine", None)
