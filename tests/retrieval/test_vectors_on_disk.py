"""The vector index of a library that has outgrown memory: its files, and several processes."""

import json
import os

import numpy as np
import pytest
from fakes import FakeShelf, HashingEmbedder

from retrieval.vector_index import VectorIndex


@pytest.fixture(autouse=True)
def few_count_as_many(monkeypatch):
    monkeypatch.setattr("retrieval.layered_index.FLAT_MOST", 20)


@pytest.fixture
def shelf():
    shelf = FakeShelf()
    for number in range(20):
        shelf.add(f"d{number}", words(number))
    return shelf


def words(number):
    return "\n\n".join(f"word{number} item{place} about things" for place in range(10))


def opened(tmp_path):
    return VectorIndex(tmp_path / "dense", embedder="hashing", dim=64, memory_most=100)


def saved(tmp_path, shelf):
    index = opened(tmp_path)
    settled(index, shelf)
    index.close()
    return tmp_path / "dense"


def settled(index, shelf):
    index.sync(shelf)
    index.settle()
    while index._index.due:
        index.sync(shelf)
        index.settle()


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def best(index, query):
    return index.search(HashingEmbedder(64).embed_query(query), 1)[0][0]


def whole(index, shelf):
    return all(index.holds(shelf, each) for each in shelf.document_ids())


def test_what_moved_to_the_disk_is_there_at_the_next_start(tmp_path, shelf, monkeypatch):
    folder = saved(tmp_path, shelf)
    about = manifest(folder)
    assert about["kind"] == "disk"
    assert [each.name for each in folder.glob("disk-*")] == [about["disk"]]
    monkeypatch.setattr(shelf, "vectors", lambda *_: pytest.fail("read again"))
    again = opened(tmp_path)
    again.sync(shelf)
    assert (again.kind, len(again)) == ("disk", 200)
    monkeypatch.undo()
    assert best(again, "word7 item3 about things") == shelf.chunk_ids("d7")[3]
    assert whole(again, shelf)


def test_additions_and_deletions_after_a_move_survive_a_start(tmp_path, shelf):
    saved(tmp_path, shelf)
    index = opened(tmp_path)
    shelf.remove("d3")
    shelf.add("new", words(99))
    index.sync(shelf)
    index.close()
    again = opened(tmp_path)
    again.sync(shelf)
    assert (again.kind, len(again), len(again._index.fresh)) == ("disk", 200, 10)
    assert best(again, "word99 item3 about things") == shelf.chunk_ids("new")[3]
    assert whole(again, shelf)
    again.close()


def test_deletions_and_additions_have_the_disk_written_anew_beside_the_work(tmp_path, shelf):
    folder = saved(tmp_path, shelf)
    before = manifest(folder)["disk"]
    index = opened(tmp_path)
    for number in range(6):
        shelf.remove(f"d{number}")
    index.sync(shelf)
    index.close()
    assert manifest(folder)["disk"] != before
    assert [each.name for each in folder.glob("disk-*")] == [manifest(folder)["disk"]]
    again = opened(tmp_path)
    assert len(again) == len(again._index._disk) == 140
    again.sync(shelf)
    assert whole(again, shelf)
    again.close()


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("codes.faiss", "cut"),
        ("vectors.f16", "cut"),
        ("ids.i64", "cut"),
        ("about.json", "cut"),
        ("codes.faiss", "gone"),
    ],
)
def test_a_damaged_folder_on_the_disk_is_built_anew(tmp_path, shelf, file, damage):
    folder = saved(tmp_path, shelf)
    hurt = folder / manifest(folder)["disk"] / file
    if damage == "cut":
        hurt.write_bytes(hurt.read_bytes()[:-10])
    else:
        hurt.unlink()
    index = opened(tmp_path)
    assert len(index) == 0
    settled(index, shelf)
    index.close()
    again = opened(tmp_path)
    assert (again.kind, len(again)) == ("disk", 200)
    assert whole(again, shelf)
    assert len(list(folder.glob("disk-*"))) == 1


def test_a_changed_vector_on_the_disk_is_seen_by_a_check(tmp_path, shelf):
    folder = saved(tmp_path, shelf)
    file = folder / manifest(folder)["disk"] / "vectors.f16"
    raw = np.fromfile(file, np.float16)
    raw[5 * 64 : 6 * 64] = -raw[5 * 64 : 6 * 64]  # the sixth chunk of the first document
    raw.tofile(file)
    index = opened(tmp_path)
    index.sync(shelf)
    assert [each for each in shelf.document_ids() if not index.holds(shelf, each)] == ["d0"]


def test_what_killed_processes_left_is_removed_at_the_next_move(tmp_path, shelf):
    folder = saved(tmp_path, shelf)
    old, young, half = (folder / f"disk-{name}" for name in ("0123", "4567", "89ab.part"))
    for left in (old, young, half):
        left.mkdir()  # not named by the manifest
    os.utime(old, (0, 0))
    again = opened(tmp_path)
    assert len(again) == 200
    for number in range(6):
        shelf.remove(f"d{number}")
    again.sync(shelf)
    again.close()
    names = sorted(each.name for each in folder.glob("disk-*"))
    assert names == sorted([young.name, manifest(folder)["disk"]])


def test_where_another_process_has_moved_this_one_goes_over_to_its_files(tmp_path, shelf):
    mine, theirs = opened(tmp_path), opened(tmp_path)
    few = FakeShelf()
    few.add("d0", words(0))
    mine.sync(few)
    theirs.sync(shelf)
    theirs.close()
    shelf.add("new", words(99))
    mine.sync(shelf)  # has outgrown memory too, and sees that it is late
    mine.close()
    assert manifest(tmp_path / "dense")["disk"] == theirs._index.disk_name
    mine.sync(shelf)
    assert (mine.kind, len(mine)) == ("disk", 210)
    assert len(mine._index.fresh) == 10
    assert whole(mine, shelf)
    mine.close()


def test_what_another_process_has_deleted_and_added_again_is_replaced(tmp_path, shelf):
    folder = saved(tmp_path, shelf)
    mine, theirs = opened(tmp_path), opened(tmp_path)
    mine.sync(shelf)
    theirs.sync(shelf)
    shelf.remove("d3")
    theirs.sync(shelf)  # overwrites it in the files that both have
    shelf.add("d3", words(3))
    theirs.sync(shelf)
    theirs.close()
    mine.sync(shelf)
    assert whole(mine, shelf)
    assert best(mine, "word3 item3 about things") == shelf.chunk_ids("d3")[3]
    mine.close()
    assert manifest(folder)["documents"]["d3"][0][0] == shelf.chunk_ids("d3")[0]


def test_one_that_is_late_goes_on_with_files_that_are_gone(tmp_path, shelf):
    saved(tmp_path, shelf)
    late, other = opened(tmp_path), opened(tmp_path)
    late.sync(shelf)
    for number in range(6):
        shelf.remove(f"d{number}")
    other.sync(shelf)
    other.close()
    assert not (tmp_path / "dense" / late._index.disk_name).exists()
    assert best(late, "word7 item3 about things") == shelf.chunk_ids("d7")[3]
    late.sync(shelf)
    assert len(late) == 140
    late.sync(shelf)
    assert late._index.disk_name == other._index.disk_name
    assert whole(late, shelf)
    late.close()
