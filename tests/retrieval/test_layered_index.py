import threading

import numpy as np
import pytest
from clouds import DIM, exact, unit

from retrieval import layered_index as module
from retrieval.disk_cells import DiskCells
from retrieval.disk_writer import written
from retrieval.layered_index import LayeredIndex

NONE = np.zeros(0, np.int64)


@pytest.fixture(autouse=True)
def few_count_as_many(monkeypatch):
    monkeypatch.setattr(module, "FLAT_MOST", 300)


def on_disk(folder, count=3_000):
    index, vectors = LayeredIndex(DIM, memory_most=1_000), unit(count)
    index.add(np.arange(count), vectors)
    assert index.due
    assert index.move(folder)
    assert (index.kind, len(index), len(index.fresh), index.due) == ("disk", count, 0, False)
    return index, vectors


def recall(index, vectors, ids, queries):
    found = index.search(queries, 10)[1]
    true = [ids[exact(vectors, query, 10)] for query in queries]
    return np.mean([np.isin(row, own).mean() for row, own in zip(true, found, strict=True)])


def test_past_a_size_vectors_move_to_the_disk_and_are_found_there(tmp_path):
    index, vectors = on_disk(tmp_path)
    queries = unit(50, seed=1)
    assert recall(index, vectors, np.arange(3_000), queries) >= 0.95
    scores, ids = index.search(queries[:1], 3)
    assert scores[0] == pytest.approx(vectors[ids[0]] @ queries[0], abs=1e-3)
    about = DiskCells(tmp_path / index.disk_name).about
    assert about.recall >= 0.95
    assert about.nprobe >= 1


def test_what_is_on_the_disk_and_what_is_new_are_searched_together(tmp_path):
    index, vectors = on_disk(tmp_path)
    new = unit(200, seed=5)
    index.add(np.arange(9_000, 9_200), new)
    everything, ids = np.concatenate([vectors, new]), np.r_[0:3_000, 9_000:9_200]
    assert recall(index, everything, ids, unit(50, seed=1)) >= 0.95
    assert index.search(new[7:8], 1)[1].tolist() == [[9_007]]
    only = np.array([3, 5, 9_001, 9_002, 50_000])
    near = index.search(new[1:2], 5, only=only)[1][0]
    assert near[0] == 9_001
    assert sorted(near) == [-1, 3, 5, 9_001, 9_002]


def test_a_search_among_many_ids_on_the_disk_finds_only_those(tmp_path, monkeypatch):
    monkeypatch.setattr("retrieval.disk_cells._EXACT_MOST", 100)
    index, vectors = on_disk(tmp_path)
    odd = np.arange(1, 3_000, 2)
    index.remove(np.array([7, 9]))
    query = unit(1, seed=3)
    found = index.search(query, 10, only=odd)[1][0]
    true = exact(vectors, query[0], 10, np.setdiff1d(odd, [7, 9]))
    assert np.isin(true, found).mean() >= 0.9
    assert (found % 2 == 1).all()


def test_what_is_removed_is_not_found_and_its_vectors_leave_the_file(tmp_path):
    index, vectors = on_disk(tmp_path)
    index.remove(np.arange(100, 200))
    assert len(index) == 2_900
    assert not np.isin(index.search(vectors[100:200], 10)[1], np.arange(100, 200)).any()
    assert index.search(vectors[100:101], 1, only=np.arange(100, 110))[1].tolist() == [[-1]]
    raw = np.fromfile(tmp_path / index.disk_name / "vectors.f16", np.float16).reshape(-1, DIM)
    assert not raw[100:200].any()
    assert raw[99].any()
    assert raw[200].any()
    assert not index.has_on_disk(np.array([100, 300]))
    assert index.has_on_disk(np.array([99, 300]), vectors[[99, 300]])
    assert not index.has_on_disk(np.array([99, 300]), vectors[[99, 301]])


def test_written_anew_the_disk_holds_what_lived_and_what_came(tmp_path, monkeypatch):
    index, vectors = on_disk(tmp_path)
    monkeypatch.setattr("retrieval.disk_writer._empty", lambda *_: pytest.fail("learnt anew"))
    index.remove(np.arange(0, 300))
    new = unit(400, seed=5)
    index.add(np.arange(9_000, 9_400), new)
    assert index.due
    before = index.disk_name
    assert index.move(tmp_path)
    assert index.disk_name != before
    assert (len(index), len(index.fresh), index.due) == (3_100, 0, False)
    everything = np.concatenate([vectors[300:], new])
    ids = np.r_[300:3_000, 9_000:9_400]
    assert recall(index, everything, ids, unit(50, seed=1)) >= 0.95
    assert index.has_on_disk(ids, everything)
    assert not index.has_on_disk(np.array([299]))


def test_cells_on_the_disk_are_learnt_anew_when_there_are_four_times_more(tmp_path):
    index, _ = on_disk(tmp_path)
    index.add(np.arange(5_000, 15_000), unit(10_000, seed=5))
    assert DiskCells(tmp_path / index.disk_name).about.learnt_from == 3_000
    assert index.move(tmp_path)
    assert DiskCells(tmp_path / index.disk_name).about.learnt_from == 13_000


def test_when_few_are_left_they_come_back_into_memory(tmp_path):
    index, vectors = on_disk(tmp_path)
    index.add(np.arange(9_000, 9_010), unit(10, seed=5))
    index.remove(np.arange(100, 3_000))
    assert index.due
    assert index.move(tmp_path)
    assert (index.kind, len(index), index.disk_name) == ("flat", 110, "")
    assert index.search(vectors[7:8], 1)[1].tolist() == [[7]]
    assert index.search(unit(10, seed=5)[3:4], 1)[1].tolist() == [[9_003]]


@pytest.fixture
def held_up(monkeypatch):
    """A move waits for the second event before it ends, and says by the first that it waits."""
    written_out, go_on = threading.Event(), threading.Event()

    def write(*arguments, **options):
        disk = written(*arguments, **options)
        written_out.set()
        assert go_on.wait(20)
        return disk

    monkeypatch.setattr(module, "written", write)
    yield written_out, go_on
    go_on.set()


def test_during_a_move_others_search_add_and_remove(tmp_path, held_up):
    written_out, go_on = held_up
    index, vectors = LayeredIndex(DIM, memory_most=1_000), unit(1_500)
    index.add(np.arange(1_500), vectors)
    mover = threading.Thread(target=index.move, args=(tmp_path,))
    mover.start()
    assert written_out.wait(20)
    assert not index.due
    assert not index.move(tmp_path)  # one at a time
    index.remove(np.arange(0, 100))
    index.add(np.arange(50, 60), vectors[50:60])  # back again
    index.add(np.arange(5_000, 5_100), unit(100, seed=5))
    index.remove(np.arange(5_000, 5_005))
    assert index.search(vectors[700:701], 1)[1].tolist() == [[700]]
    assert (index.kind, len(index)) == ("flat", 1_505)
    go_on.set()
    mover.join()
    assert (index.kind, len(index), len(index.fresh)) == ("disk", 1_505, 105)
    assert index.search(unit(100, seed=5)[7:8], 1)[1].tolist() == [[5_007]]
    assert index.search(vectors[55:56], 1)[1].tolist() == [[55]]
    assert index.search(vectors[5:6], 1)[1].tolist() != [[5]]
    raw = np.fromfile(tmp_path / index.disk_name / "vectors.f16", np.float16).reshape(-1, DIM)
    assert not raw[0:100].any()


def test_who_adds_far_more_than_can_be_moved_waits(tmp_path):
    index = LayeredIndex(DIM, memory_most=1_000)
    index.add(np.arange(1_200), unit(1_200))  # nobody has said that a move will come
    index.expect_move()
    adder = threading.Thread(target=index.add, args=(np.arange(5_000, 6_000), unit(1_000, 5)))
    adder.start()
    adder.join(0.3)
    assert adder.is_alive()
    assert index.search(unit(1_000, 5)[:1], 1)[1].tolist() == [[5_000]]
    assert index.move(tmp_path)
    index.go_on()
    adder.join(20)
    assert (index.kind, len(index)) == ("disk", 2_200)


def test_a_move_that_fails_leaves_all_as_it_was(tmp_path, monkeypatch, caplog):
    index, vectors = on_disk(tmp_path)
    index.add(np.arange(9_000, 9_500), unit(500, seed=5))
    monkeypatch.setattr(
        "retrieval.disk_writer._save", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    assert not index.move(tmp_path)
    assert "disk full" in caplog.text
    assert [each.name for each in tmp_path.iterdir()] == [index.disk_name]
    assert index.search(vectors[7:8], 1)[1].tolist() == [[7]]
    assert index.search(unit(500, seed=5)[7:8], 1)[1].tolist() == [[9_007]]
    assert not index.due  # it is not tried again at each change
    index.add(np.arange(9_500, 10_000), unit(500, seed=6))
    assert index.due
