import multiprocessing
import os
import signal
import threading

import pytest

from retrieval.word_index import WordIndex

SEA = ("sea", [(1, "The whales were hunted."), (2, "The calm sea at night.")])
LAW = ("law", [(7, "The party may terminate this agreement."), (8, "A whale of a clause.")])


@pytest.fixture
def index(tmp_path):
    index = WordIndex(tmp_path / "words")
    index.update(remove=[], add=[SEA, LAW])
    return index


def numbers(found):
    return [number for number, _ in found]


def test_words_are_found_by_their_stems_the_best_first(index):
    assert numbers(index.search("Hunting whales", 5)) == [1, 8]
    assert index.search("zebra", 5) == index.search("", 5) == index.search("?!", 5) == []
    assert len(index.search("whale the", 1)) == 1


def test_a_search_keeps_to_the_documents_that_are_named(index):
    assert numbers(index.search("whale", 5, documents=["law"])) == [8]
    assert index.search("whale", 5, documents=["law"])[0][1] > 0
    assert index.search("whale", 5, documents=[]) == []
    assert index.search("whale", 5, documents=["no such"]) == []


def test_documents_go_and_come_and_are_replaced(index):
    assert index.document_ids() == {"sea", "law"}
    index.update(remove=["sea", "never there"], add=[("law", [(9, "Nothing but whales.")])])
    assert index.document_ids() == {"law"}
    assert numbers(index.search("whale terminate", 5)) == [9]


def test_rarity_tells_common_words_from_unknown_ones(index):
    the, clause, zebra = index.rarity(["the", "clause", "zebra"])
    assert the < clause < zebra == 1.0


def test_it_outlives_its_process_and_a_second_one_sees_each_commit(index, tmp_path):
    other = WordIndex(tmp_path / "words")
    assert numbers(other.search("whale", 5)) == numbers(index.search("whale", 5))
    other.update(remove=["law"], add=[])
    assert index.document_ids() == {"sea"}
    assert numbers(index.search("whale", 5)) == [1]


def test_a_failure_midway_leaves_the_index_as_it_was(index):
    def failing():
        yield SEA[0], [(20, "half a whale")]
        raise OSError("the shelf broke")

    with pytest.raises(OSError, match="shelf broke"):
        index.update(remove=["law"], add=failing())
    assert index.document_ids() == {"sea", "law"}
    assert numbers(index.search("whale", 5)) == [8, 1] or numbers(index.search("whale", 5)) == [
        1,
        8,
    ]
    index.update(remove=["law"], add=[])
    assert index.document_ids() == {"sea"}


@pytest.mark.parametrize("keep", [0, 20])
def test_a_damaged_index_is_built_anew(index, tmp_path, keep):
    folder = next((tmp_path / "words").glob("layout-*"))
    for file in folder.iterdir():
        if not file.name.startswith("."):
            file.write_bytes(file.read_bytes()[:keep])
    again = WordIndex(tmp_path / "words")
    assert again.document_ids() == set()
    again.update(remove=[], add=[SEA])
    assert numbers(again.search("whale", 5)) == [1]


def _killed_midway(folder, ready):
    def passages():
        for number in range(100, 20_000):
            yield number, f"whale number {number}"
        ready.set()
        os.kill(os.getpid(), signal.SIGKILL)

    WordIndex(folder).update(remove=["sea"], add=[("new", passages())])


def test_a_killed_writer_leaves_the_last_commit_and_no_lock(index, tmp_path):
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    writer = spawn.Process(target=_killed_midway, args=(tmp_path / "words", ready))
    writer.start()
    writer.join(60)
    assert ready.is_set()
    assert writer.exitcode == -signal.SIGKILL
    assert index.document_ids() == {"sea", "law"}
    index.update(remove=["law"], add=[])
    assert index.document_ids() == {"sea"}


def test_threads_search_while_one_writes(index):
    failures = []

    def search():
        try:
            for _ in range(100):
                assert index.search("whale", 3)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(5):
        index.update(remove=[], add=[("sea", [(100 + turn, "a whale")])])
    for thread in threads:
        thread.join()
    assert failures == []
