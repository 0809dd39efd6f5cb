import json

import numpy as np
import pytest
from fakes import FakeShelf, HashingEmbedder

from retrieval.dense_index import DenseIndex
from retrieval.errors import EmbedderMismatch
from retrieval.vector_index import VectorIndex


@pytest.fixture
def shelf():
    shelf = FakeShelf()
    shelf.add("sea", "the whale\n\nthe calm sea")  # chunks 1 and 2
    shelf.add("law", "the party terminates\n\na clause")  # chunks 3 and 4
    return shelf


def opened(tmp_path, embedder="hashing", dim=64):
    return VectorIndex(tmp_path / "dense", embedder=embedder, dim=dim)


def found(index, query, **options):
    vector = HashingEmbedder(index._dim).embed_query(query)
    return [number for number, _ in index.search(vector, 2, **options)]


def saved(tmp_path, shelf):
    index = opened(tmp_path)
    index.sync(shelf)
    index.close()
    return tmp_path / "dense"


def test_it_follows_the_shelf(tmp_path, shelf):
    index = opened(tmp_path)
    index.sync(shelf)
    assert found(index, "whale")[0] == 1
    assert found(index, "whale", documents=["law"]) in ([3, 4], [4, 3])
    assert found(index, "whale", documents=["no such"]) == []
    shelf.remove("sea")
    shelf.add("sea", "the whale")
    index.sync(shelf)
    assert found(index, "whale")[0] == 5
    assert found(index, "whale", documents=["sea"]) == [5]


def test_the_file_saves_reading_vectors_again(tmp_path, shelf, monkeypatch):
    saved(tmp_path, shelf)
    asked = []
    vectors = shelf.vectors
    monkeypatch.setattr(shelf, "vectors", lambda *key: asked.append(key) or vectors(*key))
    shelf.add("new", "a zebra")
    again = opened(tmp_path)
    again.sync(shelf)
    assert asked == [("new", "hashing")]
    assert found(again, "zebra")[0] == 5
    assert found(again, "whale")[0] == 1


@pytest.mark.parametrize("damage", ["cut", "garbage", "no data", "no manifest", "odd manifest"])
def test_a_damaged_file_is_built_anew(tmp_path, shelf, damage):
    folder = saved(tmp_path, shelf)
    data, manifest = next(folder.glob("*.faiss")), folder / "manifest.json"
    if damage == "cut":
        data.write_bytes(data.read_bytes()[:100])
    elif damage == "garbage":
        data.write_bytes(b"?" * 1_000)
    elif damage == "no data":
        data.unlink()
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("[1]")
    index = opened(tmp_path)
    assert len(index) == 0
    index.sync(shelf)
    assert found(index, "whale")[0] == 1
    index.close()
    assert len(list(folder.glob("*.faiss"))) == 1


def test_a_file_by_another_embedder_or_of_another_length_is_not_used(tmp_path, shelf):
    saved(tmp_path, shelf)
    assert len(opened(tmp_path, embedder="other")) == 0
    assert len(opened(tmp_path, dim=32)) == 0


def test_documents_without_vectors_by_this_embedder_are_named_until_they_have_some(tmp_path, shelf):
    other = HashingEmbedder(32, name="other")
    shelf.embed("law", other)
    index = opened(tmp_path, embedder="other", dim=32)
    index.sync(shelf)
    with pytest.raises(EmbedderMismatch, match=r"1 document.*'other' \(sea\)"):
        found(index, "whale")
    assert len(found(index, "clause", documents=["law"])) == 2
    shelf.embed("sea", other)
    index.sync(shelf)
    assert found(index, "whale")[0] == 1


def test_vectors_of_a_wrong_length_under_the_same_name_count_as_missing(tmp_path, shelf):
    index = opened(tmp_path, dim=32)
    index.sync(shelf)
    with pytest.raises(EmbedderMismatch, match="2 document"):
        index.search(np.zeros(32, np.float32), 2)


def test_what_was_deleted_leaves_the_file_at_once(tmp_path, shelf):
    folder = saved(tmp_path, shelf)
    index = opened(tmp_path)
    before = next(folder.glob("*.faiss"))
    shelf.remove("law")
    index.sync(shelf)
    assert not before.exists()
    assert list(json.loads((folder / "manifest.json").read_text())["documents"]) == ["sea"]
    assert len(opened(tmp_path)) == 2


def test_an_unwritable_folder_costs_the_saving_only(tmp_path, shelf, monkeypatch, caplog):
    index = opened(tmp_path)
    index.sync(shelf)

    def full(_file):
        raise RuntimeError("No space left on device")

    monkeypatch.setattr(index._index, "write", full)
    index.close()
    assert "not saved" in caplog.text
    assert found(index, "whale")[0] == 1


def test_cells_that_were_learnt_are_kept_when_nothing_else_has_changed(tmp_path, monkeypatch):
    monkeypatch.setitem(DenseIndex.__init__.__kwdefaults__, "flat_most", 100)
    many = FakeShelf()
    many.add("many", "\n\n".join(f"word{n} of many" for n in range(150)))
    folder = saved(tmp_path, many)
    monkeypatch.setitem(DenseIndex.read.__func__.__kwdefaults__, "flat_most", 100)
    assert json.loads((folder / "manifest.json").read_text())["kind"] == "cells"
    monkeypatch.setattr("retrieval.dense_index.learnt", lambda **_: pytest.fail("learnt again"))
    again = opened(tmp_path)
    assert again.kind == "cells"
    again.close()


def test_a_large_file_from_before_its_cells_were_learnt_gets_them_once(tmp_path, monkeypatch):
    many = FakeShelf()
    many.add("many", "\n\n".join(f"word{n} of many" for n in range(150)))
    saved(tmp_path, many)
    monkeypatch.setitem(DenseIndex.read.__func__.__kwdefaults__, "flat_most", 100)
    opened(tmp_path).close()
    monkeypatch.setattr("retrieval.dense_index.learnt", lambda **_: pytest.fail("learnt again"))
    again = opened(tmp_path)
    assert again.kind == "cells"
    again.close()
