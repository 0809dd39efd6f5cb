import threading

import numpy as np
import pytest
from clouds import DIM, exact, unit

from retrieval import dense_index as module
from retrieval.cells import contents, learnt
from retrieval.dense_index import DenseIndex
from retrieval.gpu_mirror import GpuMirror


def filled(count, *, flat_most):
    index, vectors = DenseIndex(DIM, flat_most=flat_most), unit(count)
    for start in range(0, count, 500):
        part = vectors[start : start + 500]
        index.add(np.arange(start, start + len(part)), part)
    return index, vectors


def test_few_vectors_are_searched_exactly():
    index, vectors = filled(2_000, flat_most=5_000)
    assert (index.kind, len(index)) == ("flat", 2_000)
    queries = unit(20, seed=1)
    scores, ids = index.search(queries, 10)
    assert [set(row) for row in ids] == [set(exact(vectors, q, 10)) for q in queries]
    assert (np.diff(scores, axis=1) <= 0).all()
    assert scores[0, 0] == pytest.approx((vectors @ queries[0]).max(), abs=1e-3)


def test_an_index_that_is_emptied_goes_back_and_is_filled_again():
    index, vectors = filled(3_000, flat_most=1_000)
    index.settle()
    assert index.kind == "cells"
    index.remove(np.arange(3_000))
    index.settle()
    assert (index.kind, len(index)) == ("flat", 0)
    index.add(np.arange(5), vectors[:5])
    assert index.search(vectors[:1], 1)[1].tolist() == [[0]]


def test_it_grows_into_cells_by_itself_and_learns_them_anew():
    index, vectors = filled(9_000, flat_most=1_000)
    index.settle()
    assert index.kind == "cells"
    assert index.learnt_from * 4 >= 9_000
    assert len(index) == 9_000
    queries = unit(100, seed=1)
    _, ids = index.search(queries, 10)
    found = [
        len(set(row) & set(exact(vectors, q, 10))) for row, q in zip(ids, queries, strict=True)
    ]
    assert np.mean(found) / 10 >= 0.95


@pytest.mark.parametrize("flat_most", [100_000, 1_000])
def test_a_search_among_a_few_ids_is_exact(flat_most):
    index, vectors = filled(6_000, flat_most=flat_most)
    index.settle()
    for rows in (np.arange(700, 760), np.array([3, 77, 78, 5_000, 5_999])):
        _, ids = index.search(unit(5, seed=2), 4, only=rows)
        for row, query in zip(ids, unit(5, seed=2), strict=True):
            assert list(row) == list(exact(vectors, query, 4, rows))


@pytest.mark.parametrize("flat_most", [100_000, 1_000])
def test_what_is_removed_is_not_found_again(flat_most):
    index, _ = filled(3_000, flat_most=flat_most)
    index.settle()
    index.remove(np.arange(0, 2_990))
    index.remove(np.array([123_456]))
    index.remove(np.array([], np.int64))
    assert len(index) == 10
    assert set(index.search(unit(1), 50)[1][0]) == set(range(2_990, 3_000))


def test_an_empty_index_finds_nothing():
    index = DenseIndex(DIM)
    assert index.search(unit(2), 5)[1].shape == (2, 0)
    index.add(np.array([7]), unit(1))
    assert index.search(unit(1), 5)[1].tolist() == [[7]]
    assert index.search(unit(1), 5, only=np.array([], np.int64))[1].shape == (1, 0)
    assert index.search(unit(1), 5, only=np.array([8]))[1].tolist() == [[-1]]


def test_vectors_of_another_length_are_refused_in_words():
    with pytest.raises(ValueError, match=r"needed vectors of shape \(2, 32\)"):
        DenseIndex(DIM).add(np.array([1, 2]), np.zeros((2, 31), np.float32))


@pytest.mark.parametrize("flat_most", [100_000, 1_000])
def test_it_is_written_and_read_whole(tmp_path, flat_most):
    index, _ = filled(3_000, flat_most=flat_most)
    index.settle()
    index.write(tmp_path / "index")
    again = DenseIndex.read(tmp_path / "index", learnt_from=index.learnt_from)
    assert again.kind == index.kind
    assert (again.search(unit(9, 1), 5)[1] == index.search(unit(9, 1), 5)[1]).all()
    again.add(np.array([50_000]), unit(1, 1))
    assert again.search(unit(1, 1), 1)[1].tolist() == [[50_000]]


def test_threads_search_while_one_adds_and_removes():
    index, _ = filled(2_000, flat_most=1_000)
    failures = []

    def search():
        try:
            for _ in range(200):
                assert index.search(unit(1, 3), 5)[1].shape == (1, 5)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        index.add(np.arange(10_000 + turn * 100, 10_100 + turn * 100), unit(100, turn))
        index.remove(np.arange(turn * 10, turn * 10 + 10))
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(index) == 3_800


class FakeGpus:
    """Stands for FAISS on a machine with a GPU: copies are the index itself, and are counted."""

    def __init__(self):
        self.copies = 0
        self.threads = set()

    class StandardGpuResources:
        pass

    def SearchParametersIVF(self, *, nprobe):
        import faiss

        return faiss.SearchParametersIVF(nprobe=nprobe)

    def index_cpu_to_gpu(self, resources, device, index):
        assert (type(resources), device) == (self.StandardGpuResources, 0)
        self.copies += 1
        self.threads.add(threading.current_thread().name)
        return index


def test_a_gpu_mirror_serves_searches_and_is_copied_anew_only_after_a_change():
    index, _ = filled(3_000, flat_most=1_000)
    index.settle()
    plain = index.search(unit(5, 1), 5)[1]
    gpus = FakeGpus()
    index._mirror = GpuMirror(gpus)
    assert (index.search(unit(5, 1), 5)[1] == plain).all()
    index.search(unit(5, 1), 5)
    index.search(unit(5, 1), 5, only=np.arange(5))
    assert gpus.copies == 1
    index.add(np.array([9_000]), unit(1, 1))
    assert index.search(unit(1, 1), 1)[1].tolist() == [[9_000]]
    assert gpus.copies == 2
    assert len(gpus.threads) == 1
    index.close()


@pytest.fixture
def held_up(monkeypatch):
    """Learning waits for the second event, and says by the first that it has begun."""
    begun, go_on = threading.Event(), threading.Event()

    def learn(*arguments, **options):
        begun.set()
        assert go_on.wait(20)
        return learnt(*arguments, **options)

    monkeypatch.setattr(module, "learnt", learn)
    yield begun, go_on
    go_on.set()


def test_while_cells_are_learnt_others_search_add_and_remove(held_up):
    begun, go_on = held_up
    index, vectors = filled(1_500, flat_most=1_000)
    assert begun.wait(20)
    seen = []
    searcher = threading.Thread(target=lambda: seen.append(index.search(vectors[7:8], 1)[1]))
    searcher.start()
    searcher.join(20)
    assert [ids.tolist() for ids in seen] == [[[7]]]
    index.remove(np.arange(0, 100))
    index.add(np.arange(50, 90), vectors[50:90])  # back again
    index.add(np.arange(5_000, 11_000), unit(6_000, seed=5))
    index.remove(np.arange(6_000, 6_010))
    assert (index.kind, len(index)) == ("flat", 7_430)
    go_on.set()
    index.settle()
    assert (index.kind, len(index)) == ("cells", 7_430)
    assert index.learnt_from > 4_000  # those that came meanwhile outgrew the first cells
    kept = np.concatenate([np.arange(50, 90), np.arange(100, 1_500)])
    new = np.setdiff1d(np.arange(5_000, 11_000), np.arange(6_000, 6_010))
    held = np.concatenate([ids for ids, _ in contents(index._index, index._lock)])
    assert sorted(held) == [*kept, *new]


def test_cells_that_cannot_be_learnt_leave_all_as_it_is(monkeypatch, caplog):
    def fail(*_arguments, **_options):
        raise MemoryError("no room")

    monkeypatch.setattr(module, "learnt", fail)
    index, vectors = filled(1_500, flat_most=1_400)
    index.settle()
    assert "no room" in caplog.text
    assert index.search(vectors[7:8], 1)[1].tolist() == [[7]]
    monkeypatch.setattr(module, "learnt", learnt)
    index.add(np.arange(9_000, 9_100), unit(100, seed=5))
    assert index.kind == "flat"  # it is not tried again at each change
    index.add(np.arange(10_000, 10_500), unit(500, seed=6))
    index.settle()
    assert index.kind == "cells"


@pytest.mark.parametrize("flat_most", [100_000, 1_000])
def test_contents_come_whole_while_others_remove(flat_most):
    index, vectors = filled(70_000, flat_most=flat_most)
    index.settle()
    seen, parts = [], index.contents()
    seen.append(next(parts))
    index.remove(np.arange(0, 100))  # shifts all that lies behind
    seen += parts
    ids = np.concatenate([some for some, _ in seen])
    assert np.isin(np.arange(100, 70_000), ids).all()
    there = np.concatenate([some for _, some in seen]).astype(np.float32)
    assert np.allclose(there, vectors[ids], atol=1e-3)
