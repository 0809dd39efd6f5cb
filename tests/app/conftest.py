import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.library import Library
from app.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))  # the fakes of finding
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))  # the fake server
from door import Door, model_cache
from fake_server import FakeServer, events
from fakes import HashingEmbedder
from tales import LAMP, WELL

from serving.scripted import ScriptedLLM


@pytest.fixture
def lamp(tmp_path) -> Path:
    path = tmp_path / "lamp.txt"
    path.write_text(LAMP, encoding="utf-8")
    return path


@pytest.fixture
def well(tmp_path) -> Path:
    path = tmp_path / "well.txt"
    path.write_text(WELL, encoding="utf-8")
    return path


@pytest.fixture
def refused(monkeypatch):
    """Folders that the system does not let anybody look into; root may look everywhere."""
    refused, scandir = {}, os.scandir

    def look(path="."):
        if str(path) in refused:
            raise OSError(refused[str(path)], "no such luck", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", look)
    return refused


@pytest.fixture
def opened(tmp_path):
    """Opens libraries with a hashing embedder and given replies, and closes them."""
    libraries = []

    def open_one(*replies: str, place: Path | None = None, **options) -> Library:
        library = Library(
            place or tmp_path / "library",
            settings=Settings(library=str(tmp_path / "library"), pruner="none"),
            model=ScriptedLLM(list(replies)),
            embedder=HashingEmbedder(),
            **options,
        )
        libraries.append(library)
        return library

    yield open_one
    for library in libraries:
        library.close()


@pytest.fixture
def door(tmp_path) -> Door:
    """The command line over an empty library, with no language model within reach."""
    return Door(tmp_path, model_cache(), {"GISTREE_MODEL": "http://127.0.0.1:9"})


@pytest.fixture(scope="module")
def model_server() -> Iterator[FakeServer]:
    """A server whose model says that the Petrel struck the reef, whatever it is asked."""
    fake = FakeServer()
    fake.say("/v1/models", {"object": "list", "data": [{"id": "parrot", "object": "model"}]})
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None}
    fake.say(
        "/v1/chat/completions", events("The schooner ", "Petrel struck the reef.", usage=usage)
    )
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory, model_server) -> Door:
    """The command line over a library of two tales, with a model. Leave it as it is."""
    home = tmp_path_factory.mktemp("filled")
    (home / "lamp.txt").write_text(LAMP, encoding="utf-8")
    (home / "well.txt").write_text(WELL, encoding="utf-8")
    door = Door(home, model_cache(), {"GISTREE_MODEL": model_server.url})
    assert door("add", home / "lamp.txt", home / "well.txt").code == 0
    return door
