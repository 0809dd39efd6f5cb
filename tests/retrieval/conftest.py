from pathlib import Path

import platformdirs
import pytest


@pytest.fixture(scope="session")
def minilm_files() -> tuple[Path, Path]:
    """ONNX file and tokenizer of the default embedder, from the model cache."""
    models = platformdirs.user_cache_path("gistree") / "models"
    files = models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2" / "tokenizer.json"
    if not all(file.is_file() for file in files):
        pytest.skip("needs the default embedder in the model cache: gistree models fetch")
    return files
