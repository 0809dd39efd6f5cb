import sys
from pathlib import Path

import pytest

from app.library import Library
from app.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))  # the fakes of finding
from fakes import HashingEmbedder

from serving.scripted import ScriptedLLM

LAMP = """The Lamp

Chapter 1

Mira lit the lamp in the tower every evening. Her brother Joss rowed out to the reef.

The lamp burned whale oil, and a gallon of it cost three shillings in 1821.

Chapter 2

On the ninth of March a storm put the lamp out. The schooner Petrel struck the reef and sank.

Joss pulled eleven sailors from the water. The captain, a man named Orlov, was not among them.
"""

WELL = """The Well

The village of Ansty dug a well in 1790. It was forty feet deep, and the water tasted of iron.

When the well ran dry, the miller Tobias sold water by the bucket.
"""


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
