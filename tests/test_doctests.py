"""The examples in docstrings run."""

import doctest
import importlib
import os
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[1]


def modules_with_examples() -> list[str]:
    files = [ROOT / "gistree.py"]
    for layer in ("app", "agents", "retrieval", "memory", "serving"):
        files += sorted((ROOT / layer).rglob("*.py"))
    with_examples = [file for file in files if ">>> " in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in with_examples]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_run(module, tmp_path, monkeypatch):
    usual = platformdirs.user_cache_path("gistree") / "models"
    folder = Path(os.environ.get("GISTREE_MODELS", usual))
    if not (folder / "minilm-l6-v2-int8.onnx").exists():
        pytest.skip(
            "the embedder is not in the model cache: gistree models fetch minilm-l6-v2-int8"
        )
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed
