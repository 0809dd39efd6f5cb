import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest
from fake_server import FakeServer

from serving.backends.llamacpp import LlamaCpp
from serving.catalogue import card


def model_file(name: str) -> Path:
    """A model of the model cache."""
    models = Path(
        os.environ.get("GISTREE_MODELS") or platformdirs.user_cache_path("gistree") / "models"
    )
    if not card(name).is_in(models):
        pytest.skip(f"the model {name} is not in {models}: gistree models fetch {name}")
    return card(name).paths(models)[0]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def smollm_file() -> Path:
    return model_file("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def smollm(smollm_file: Path) -> Iterator[LlamaCpp]:
    """The smallest model, for mechanics."""
    model = LlamaCpp(smollm_file, ability="tiny", context_window=2_048, num_threads=2)
    yield model
    model.close()


@pytest.fixture(scope="session")
def qwen() -> Iterator[LlamaCpp]:
    """The default model, for what needs a reader."""
    model = LlamaCpp(model_file("qwen2.5-coder-1.5b-instruct"), num_threads=2)
    yield model
    model.close()
