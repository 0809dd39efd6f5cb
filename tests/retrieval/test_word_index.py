import multiprocessing
import os
import shutil
import signal
import threading
from types import SimpleNamespace

import pytest
from fakes import FakeShelf

import retrieval.word_index
from memory.errors import DocumentNotFound
from retrieval.errors import RetrievalError
from retrieval.word_index import WordIndex

SEA = "The whales were hunted.\n\nThe calm sea at night."  # chunks 1 and 2
LAW = "The party may terminate this agreement.\n\nA whale of a clause."  # chunks 3 and 4


@pytest.fixture
def shelf():
    shelf = FakeShelf()
    shelf.add("sea", SEA, header="Book of the sea")
    shelf.add("law", LAW)
    return shelf


@pytest.fixture
def index(tmp_path, shelf):
    index = WordIndex(tmp_path / "words")
    index.sync(shelf)
    return index


def numbers(found):
    return [number for number, _ in found]


def test_words_are_found_by_their_stems_the_best_first(index):
    assert numbers(index.search("Hunting whales", 5)) == [1, 4]
    assert index.search("zebra", 5) == index.search("", 5) == index.search("?!", 5) == []
    assert len(index.search("whale the", 1)) == 1


def test_words_of_the_header_count(index):
    assert set(numbers(index.search("book", 5))) == {1, 2}


def test_a_search_keeps_to_the_documents_that_are_named(index):
    assert numbers(index.search("whale", 5, documents=["law"])) == [4]
    assert index.search("whale", 5, documents=["law"])[0][1] > 0
    assert index.search("whale", 5, documents=[]) == []
    assert index.search("whale", 5, documents=["no such"]) == []


@pytest.mark.parametrize("small", [0, 1000])
def test_documents_go_and_come(index, shelf, small, monkeypatch):
    monkeypatch.setattr(retrieval.word_index, "SMALL", small)
    shelf.remove("sea")
    shelf.add("new", "Nothing but whales.")
    index.sync(shelf)
    assert index.document_ids() == {"law", "new"}
    assert set(numbers(index.search("whale", 5))) == {4, 5}


@pytest.mark.parametrize("small", [0, 1000])
def test_a_document_that_came_back_with_new_chunks_is_replaced_when_verified(
    index, shelf, small, monkeypatch
):
    monkeypatch.setattr(retrieval.word_index, "SMALL", small)
    shelf.remove("sea")
    shelf.add("sea", SEA)
    index.sync(shelf, verify=True)
    assert set(numbers(index.search("whale", 5))) == {4, 5}
    assert index.document_ids() == {"sea", "law"}


@pytest.mark.parametrize("small", [0, 1000])
def test_no_word_of_a_deleted_document_stays_in_the_files(index, shelf, small, monkeypatch):
    monkeypatch.setattr(retrieval.word_index, "SMALL", small)
    shelf.add("secret", "Xylophagous quokkas.")
    index.sync(shelf)
    shelf.remove("secret")
    index.sync(shelf)
    words = [word for word, _ in index._searcher().terms_with_prefix("words", "")]
    assert "whale" in words
    assert "quokka" not in words


def test_rare_words_are_those_that_few_passages_hold(index):
    assert index.rare_share("clause") == 1.0
    assert index.rare_share("clause zebra") == 0.5
    assert index.rare_share("the whale") == index.rare_share("") == 0.0


def test_it_outlives_its_process_and_a_second_one_sees_each_commit(index, shelf, tmp_path):
    other = WordIndex(tmp_path / "words")
    assert numbers(other.search("whale", 5)) == numbers(index.search("whale", 5))
    shelf.remove("law")
    other.sync(shelf)
    assert index.document_ids() == {"sea"}
    assert numbers(index.search("whale", 5)) == [1]


def test_a_failure_midway_leaves_the_index_as_it_was(index, shelf, monkeypatch):
    shelf.add("zoo", "Half a whale.")
    shelf.remove("law")
    texts = shelf.chunk_texts
    monkeypatch.setattr(shelf, "chunk_texts", lambda each: texts(each) if each == "sea" else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index.sync(shelf)
    assert index.document_ids() == {"sea", "law"}
    assert set(numbers(index.search("whale", 5))) == {1, 4}
    monkeypatch.undo()
    index.sync(shelf)
    assert index.document_ids() == {"sea", "zoo"}


@pytest.mark.parametrize("keep", [0, 20])
def test_a_damaged_index_is_built_anew(index, shelf, tmp_path, keep):
    folder = next((tmp_path / "words").glob("layout-*"))
    for file in folder.iterdir():
        if not file.name.startswith("."):
            file.write_bytes(file.read_bytes()[:keep])
    again = WordIndex(tmp_path / "words")
    assert again.document_ids() == set()
    again.sync(shelf)
    assert numbers(again.search("hunted whale", 5)) == [1, 4]


@pytest.mark.parametrize("part", ["term", "idx", "pos", "fast", "fieldnorm", "store"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_is_gone_or_one_bit_of_it_changed_is_seen(index, shelf, tmp_path, part, gone):
    """What tantivy itself does not see: it would find other words, or end the process."""
    del index
    file = next((tmp_path / "words").glob(f"layout-*/*.{part}"))
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 4
    if gone:
        file.unlink()
    else:
        file.write_bytes(data)
    again = WordIndex(tmp_path / "words")
    assert again.document_ids() == set()
    again.sync(shelf)
    assert numbers(again.search("hunted whale", 5)) == [1, 4]


def test_an_index_whose_files_vanish_while_it_is_open_is_built_anew(index, shelf, tmp_path):
    shutil.rmtree(next((tmp_path / "words").glob("layout-*")))
    shelf.add("new", "A whale.")
    index.sync(shelf)
    assert set(numbers(index.search("whale", 5))) == {1, 4, 5}


def test_an_index_that_cannot_be_written_says_what_to_do(index, shelf, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(index, "_index", SimpleNamespace(writer=full))
    with pytest.raises(RetrievalError, match="make room"):
        index._write(shelf, remove=None, add=["sea"])


def _killed_midway(folder):
    shelf = FakeShelf()
    for number in range(50):
        shelf.add(f"d{number}", "\n\n".join(f"whale number {turn}" for turn in range(100)))
    texts = shelf.chunk_texts

    def texts_until_killed(document_id):
        if document_id == "d9":  # the last one
            os.kill(os.getpid(), signal.SIGKILL)
        return texts(document_id)

    shelf.chunk_texts = texts_until_killed
    WordIndex(folder).sync(shelf)


def test_a_killed_writer_leaves_the_last_commit_and_no_lock(index, shelf, tmp_path):
    writer = multiprocessing.get_context("spawn").Process(
        target=_killed_midway, args=(tmp_path / "words",)
    )
    writer.start()
    writer.join(60)
    assert writer.exitcode == -signal.SIGKILL
    assert index.document_ids() == {"sea", "law"}
    shelf.remove("law")
    index.sync(shelf)
    assert index.document_ids() == {"sea"}


def test_threads_search_while_one_writes(index, shelf):
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
        shelf.add(f"more{turn}", "a whale")
        index.sync(shelf)
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_document_that_goes_while_it_is_written_holds_up_no_other(index, shelf, monkeypatch):
    shelf.add("comes", "A zeppelin over the harbour.")
    shelf.add("goes", "A zeppelin over the reef.")
    texts = shelf.chunk_texts

    def chunk_texts(document_id):
        if document_id == "goes":
            raise DocumentNotFound("deleted by another process")
        return texts(document_id)

    monkeypatch.setattr(shelf, "chunk_texts", chunk_texts)
    index.sync(shelf)
    assert len(index.search("zeppelin", 5)) == 1
