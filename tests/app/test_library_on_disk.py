"""A library whose vectors have moved to the disk, as a user has it."""

import numpy as np
import pytest
from fakes import HashingEmbedder

from app.library import Library
from app.settings import Settings
from serving.scripted import ScriptedLLM


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setattr("retrieval.layered_index.FLAT_MOST", 2)
    settings = Settings(library=str(tmp_path / "library"), pruner="none", vectors_in_memory=4)
    with Library(settings=settings, model=ScriptedLLM([]), embedder=HashingEmbedder()) as library:
        for number in range(8):
            text = "\n\n".join(f"The lamp {number} of tower {n} burned. " * 30 for n in range(3))
            library.add(f"Tale {number}\n\n{text}".encode(), name=f"{number}.txt")
        library.search("a lamp")
        library._searcher._vectors.settle()
        assert library._searcher._vectors.kind == "disk"
        yield library


def test_it_is_searched_checked_and_loses_what_is_deleted(library):
    assert library.search("The lamp 5 of tower 2 burned", top_k=1)
    assert list(library.check()) == []
    library.delete("5.txt")
    library.add(b"A zebra came at noon.", name="zebra.txt")
    found = {library.show(each.document_id).name for each in library.search("zebra", top_k=50)}
    assert "zebra.txt" in found
    assert "5.txt" not in found
    assert list(library.check()) == []


def test_a_damaged_vector_is_found_by_check_and_repaired(library):
    file = next(library.place.index.glob("dense/disk-*/vectors.f16"))
    raw = np.fromfile(file, np.float16)
    raw[:64] = -raw[:64]
    raw.tofile(file)
    assert [flaw.kind for flaw in library.check()] == ["index"]
    assert [flaw.repaired for flaw in library.check(repair=True)] == [True]
    library._searcher._vectors.settle()
    assert list(library.check()) == []


def test_what_another_process_deletes_and_adds_again_is_found_by_both(library):
    def opened():
        return Library(settings=library.settings, model=ScriptedLLM([]), embedder=HashingEmbedder())

    with opened() as other:
        name, text = "6.txt", other.file("6.txt").read_bytes()
        other.delete(name)
        other.add(text, name=name)
        assert list(other.check()) == []
        library.add(b"A zebra came at noon.", name="zebra.txt")
        assert list(library.check()) == []
        wanted = library.show(name).id
        for each in (other, library):
            found = each.search("The lamp 6 of tower 2 burned", documents=[name], top_k=1)
            assert [passage.document_id for passage in found] == [wanted]
