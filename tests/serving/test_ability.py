"""What a model of which nobody said it can be trusted with."""

import pytest

from serving.ability import ability_of
from serving.catalogue import catalogue

LLMS = [card for card in catalogue().values() if card.kind == "llm"]


@pytest.mark.parametrize("card", LLMS, ids=lambda card: card.name)
def test_the_name_tells_what_the_catalogue_says(card):
    assert ability_of(card.vllm or card.name) == card.ability


@pytest.mark.parametrize("name", ["gpt-4o", "o3", "claude-sonnet", "model", "v2.5b2", "a1mb"])
def test_a_name_without_a_size_is_trusted(name):
    assert ability_of(name) == "large"


@pytest.mark.parametrize(
    ("name", "ability"),
    [
        ("Qwen3-30B-A3B", "large"),
        ("llama3.2:1b", "small"),
        ("gemma-3-270m-it", "tiny"),
        ("/models/v2.1/phi_3.8B", "small"),
    ],
)
def test_a_size_is_found_wherever_names_have_it(name, ability):
    assert ability_of(name) == ability


def test_a_folder_is_judged_by_its_weights(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(270_000_000)  # a hole, not bytes
    assert ability_of(str(folder)) == "tiny"
