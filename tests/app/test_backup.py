"""A library in one file, and back; what is not whole is refused."""

import io
import shutil
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.backup import restore
from memory.errors import LibraryError


@pytest.fixture
def shelf(opened, lamp, well):
    library = opened()
    library.add(lamp, tags=["sea"])
    library.add(well)
    return library


def test_what_comes_back_is_what_went_in(opened, shelf, tmp_path):
    file = tmp_path / "library.tar"
    assert shelf.backup(file) == 2
    assert restore(file, tmp_path / "again") == 2
    again = opened(place=tmp_path / "again")
    assert again.list() == shelf.list()
    for entry in shelf.list():
        assert again.document(entry.id) == shelf.document(entry.id)
        assert again.file(entry.id).read_bytes() == shelf.file(entry.id).read_bytes()
    assert list(again.check()) == []
    assert again.search("schooner")[0].quote == shelf.search("schooner")[0].quote
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_batches_and_what_is_watched_come_back_too(opened, shelf, tmp_path):
    place = shelf.place
    kept = {
        place.folder / "watched.json": "{}",
        place.batches / "b-1" / "questions.csv": "question\nHow deep?\n",
        place.batches / "b-1" / "answers.jsonl": '{"row": 0}\n',
        place.batches / "b-1" / "answers.jsonl.settings.json": "{}",
    }
    passing = place.batches / "b-1" / "answers.jsonl.lock"
    for path, text in {**kept, passing: ""}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shelf.backup(tmp_path / "library.tar")
    restore(tmp_path / "library.tar", tmp_path / "again")
    for path, text in kept.items():
        assert (tmp_path / "again" / path.relative_to(place.folder)).read_text() == text
    assert not (tmp_path / "again" / passing.relative_to(place.folder)).exists()


def test_answers_that_are_written_meanwhile_do_not_spoil_it(opened, shelf, tmp_path):
    answers = shelf.place.batches / "b-1" / "answers.jsonl"
    answers.parent.mkdir(parents=True)
    answers.write_text("{}\n")
    stop = threading.Event()

    def write():
        with answers.open("a") as file:
            while not stop.is_set():
                file.write('{"row": 1}\n' * 50)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            shelf.backup(tmp_path / f"{number}.tar")
            restore(tmp_path / f"{number}.tar", tmp_path / f"again-{number}")
    finally:
        stop.set()
        writer.join()


def test_batches_that_come_and_go_meanwhile_do_not_end_it(shelf, tmp_path):
    ended = threading.Event()

    def come_and_go():
        while not ended.is_set():
            for number in range(20):
                folder = shelf.place.batches / f"b-{number}"
                folder.mkdir(parents=True)
                (folder / "answers.jsonl").write_text("{}")
            shutil.rmtree(shelf.place.batches)

    with ThreadPoolExecutor() as pool:
        other = pool.submit(come_and_go)
        try:
            for number in range(40):
                shelf.backup(tmp_path / f"{number}.tar")
        finally:
            ended.set()
        other.result()
    assert restore(tmp_path / "39.tar", tmp_path / "restored") == len(shelf.list())


def test_a_backup_is_of_one_moment_while_others_write(opened, shelf, tmp_path):
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            entry = shelf.add(f"The lamp burned in {number}.".encode(), name=f"{number}.txt")
            if number % 2:
                shelf.delete(entry.id)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            file = tmp_path / f"{number}.tar"
            count = shelf.backup(file)
            assert restore(file, tmp_path / f"again-{number}") == count >= 2
    finally:
        stop.set()
        writer.join()
    for number in range(4):
        library = opened(place=tmp_path / f"again-{number}")
        library.finish_interrupted()
        assert list(library.check()) == []


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.8])
def test_a_backup_that_is_cut_off_is_refused_and_nothing_is_made(shelf, tmp_path, cut):
    file = tmp_path / "library.tar"
    shelf.backup(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(LibraryError, match=r"cut off|no whole backup|no backup"):
        restore(file, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".again")]


def test_a_changed_byte_is_found(shelf, tmp_path):
    file = tmp_path / "library.tar"
    shelf.backup(file)
    data = bytearray(file.read_bytes())
    place = data.rindex(b"The village of Ansty dug a well")
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(LibraryError, match=r"damaged: files/"):
        restore(file, tmp_path / "again")


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "files/../../evil", "notes.txt"])
def test_an_archive_that_holds_something_else_is_refused(tmp_path, name):
    file = tmp_path / "evil.tar"
    with tarfile.open(file, "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(LibraryError, match="it holds"):
        restore(file, tmp_path / "in" / "again")
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"sha256": 3}', b"[" * 100_000])
def test_a_list_that_cannot_be_read_is_told(tmp_path, data):
    file = tmp_path / "library.tar"
    with tarfile.open(file, "w") as archive:
        member = tarfile.TarInfo("gistree-backup.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    with pytest.raises(LibraryError, match="its list cannot be read"):
        restore(file, tmp_path / "again")


def test_a_folder_with_something_in_it_is_left_alone(shelf, tmp_path):
    file = tmp_path / "library.tar"
    shelf.backup(file)
    with pytest.raises(LibraryError, match="not empty"):
        restore(file, shelf.place.folder)
    with pytest.raises(LibraryError, match="no file"):
        restore(tmp_path / "none.tar", tmp_path / "again")
    with pytest.raises(LibraryError, match="no whole backup"):
        restore(shelf.file("lamp.txt"), tmp_path / "again")
    with pytest.raises(LibraryError, match="no folder"):
        shelf.backup(tmp_path / "none" / "library.tar")


def test_a_document_whose_file_is_gone_is_named_as_the_reason(shelf, tmp_path):
    shelf.file("lamp.txt").unlink()
    with pytest.raises(LibraryError, match="gistree check"):
        shelf.backup(tmp_path / "library.tar")
    assert not (tmp_path / "library.tar").exists()
