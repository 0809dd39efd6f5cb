"""Sparse attention inside a real vLLM, on the CPU."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
pytest.importorskip("vllm", reason="needs vLLM; make test-vllm")

MODEL = Path(
    os.environ.get("GISTREE_VLLM_MODEL", "~/.cache/gistree/models/smollm2-135m-instruct-hf")
).expanduser()
LENGTHS = ("1900", "700", "40")


@cache
def generated(attention: str) -> dict:
    """What vLLM says with a setting of attention, and how many tokens its heads have read."""
    if not MODEL.is_dir():
        pytest.skip(f"there is no model folder {MODEL}; make test-vllm makes it")
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("engine.py")), str(MODEL), *LENGTHS],
        env={**os.environ, "GISTREE_ATTENTION": attention},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    return json.loads(process.stdout.strip().splitlines()[-1])


def test_without_the_variable_vllm_is_as_it_was():
    assert generated("")["read"] == [0, 0, 0]


def test_a_budget_that_covers_everything_says_what_dense_attention_says():
    spec = "quest:budget=8192;critiprefill:budget=8192,segment=256;dense_layers=0;from_tokens=0"
    sparse = generated(spec)
    read, there, layers = sparse["read"]
    assert read >= there > 0  # every token was read, through block tables of ours
    assert layers == 30
    assert sparse["rounds"] == generated("")["rounds"]


def test_a_small_budget_reads_as_much_as_asked_and_the_prefix_cache_goes_on_working():
    sparse = generated("quest:budget=256;critiprefill:budget=256,segment=256")
    read, there, _ = sparse["read"]
    assert 0 < read < 0.5 * there
    assert sparse["cached"] == generated("")["cached"]
    assert sparse["rounds"][0][2] == generated("")["rounds"][0][2]  # short ones are read whole


def test_heads_are_calibrated_and_read_by_the_patterns_that_were_found(tmp_path):
    if not MODEL.is_dir():
        pytest.skip(f"there is no model folder {MODEL}; make test-vllm makes it")
    heads = tmp_path / "heads.json"
    book = Path(__file__).parents[2] / "app/samples/persuasion.txt"
    options = ["--budget", "384", "--tokens", "1500", "--at-least", "0.5"]
    process = subprocess.run(
        [sys.executable, "-m", "serving.calibrate", MODEL, book, "--out", heads, *options],
        env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "GISTREE_ATTENTION": ""},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    layers = json.loads(heads.read_text())["layers"]
    assert [len(layer) for layer in layers] == [3] * 30
    kinds = {head["pattern"] for layer in layers for head in layer}
    assert {"a_shape", "vertical_slash"} <= kinds
    read, there, _ = generated(f"minference:budget=384,heads={heads};dense_layers=0")["read"]
    assert 0 < read < 0.95 * there


def test_a_selector_that_does_not_exist_is_said_before_a_model_is_loaded():
    process = subprocess.run(
        [sys.executable, "-c", "from serving.sparse_plugin import register; register()"],
        env={**os.environ, "GISTREE_ATTENTION": "magic:budget=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no selector is named 'magic'; known: critiprefill, hip, minference" in process.stderr
