"""Folders that are watched."""

import errno
import json
import os
import signal
import threading
import time

import pytest
from door import Door, model_cache

from app.watch import Watch
from memory.errors import DocumentNotFound


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "watched"
    folder.mkdir()
    return folder


def write(path, text):
    path.write_text(text)
    old = time.time() - 60  # settled
    os.utime(path, (old, old))


def watch(library, folder, **options):
    return [(e.what, e.path.name) for e in Watch(library, [folder], **options).catch_up()]


def names(library):
    return sorted(entry.name for entry in library.list())


def test_what_comes_changes_and_goes(opened, folder):
    library = opened()
    write(folder / "lamp.txt", "The lamp went out at nine.")
    assert watch(library, folder) == [("added", "lamp.txt")]
    assert watch(library, folder) == []  # another start knows it still
    write(folder / "lamp.txt", "The lamp went out at ten o'clock.")
    assert watch(library, folder) == [("changed", "lamp.txt")]
    assert len(library.list()) == 1  # the old text is gone
    assert "ten" in library.document("lamp.txt").text
    (folder / "lamp.txt").unlink()
    assert watch(library, folder) == [("gone", "lamp.txt")]
    assert names(library) == ["lamp.txt"]
    write(folder / "lamp.txt", "The lamp went out at ten o'clock.")
    assert watch(library, folder, delete=True) == [("added", "lamp.txt")]
    (folder / "lamp.txt").unlink()
    assert watch(library, folder, delete=True) == [("deleted", "lamp.txt")]
    assert names(library) == []


def test_two_files_with_the_same_bytes_are_one_document_until_both_are_gone(opened, folder):
    library = opened()
    for name in ("a.txt", "b.txt"):
        write(folder / name, "The same lamp.")
    watch(library, folder, delete=True)
    assert len(library.list()) == 1
    (folder / "a.txt").unlink()
    assert watch(library, folder, delete=True) == [("gone", "a.txt")]
    assert len(library.list()) == 1
    (folder / "b.txt").unlink()
    assert watch(library, folder, delete=True) == [("deleted", "b.txt")]
    assert library.list() == ()


def test_half_written_hidden_and_temporary_files_wait(opened, folder):
    library = opened()
    (folder / "fresh.txt").write_text("Somebody is still writing th")
    for name in (".hidden.txt", "book.pdf.part", "notes.txt~", "~$letter.docx"):
        write(folder / name, "Not whole.")
    write(folder / "empty.txt", "")
    assert watch(library, folder) == []
    write(folder / "fresh.txt", "Somebody is still writing this.")
    assert watch(library, folder) == [("added", "fresh.txt")]


def test_a_bad_file_is_told_once_and_again_when_it_changes(opened, folder):
    library = opened()
    write(folder / "bad.pdf", "%PDF-1.7 nothing")
    assert watch(library, folder) == [("failed", "bad.pdf")]
    assert watch(library, folder) == []
    write(folder / "bad.pdf", "%PDF-1.7 nothing again")
    assert watch(library, folder) == [("failed", "bad.pdf")]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_what_cannot_be_looked_at_has_not_gone(opened, folder, refused, number):
    library = opened()
    write(folder / "lamp.txt", "The lamp went out at nine.")
    (folder / "deep").mkdir()
    write(folder / "deep" / "well.txt", "The well is nine fathoms deep.")
    keeper = Watch(library, [folder], delete=True)
    assert len(list(keeper.catch_up())) == 2
    for where in (folder, folder / "deep"):
        if number == errno.ENOENT and where != folder:
            continue  # it has gone indeed
        refused[str(where)] = number
        (event,) = keeper.catch_up()
        assert str(event) == f"failed {where}: cannot be looked at: no such luck"
        assert list(keeper.catch_up()) == []  # told once
        refused.clear()
        assert list(keeper.catch_up()) == []
        assert len(library.list()) == 2
    (folder / "deep" / "well.txt").unlink()
    (folder / "deep").rmdir()
    assert [event.what for event in keeper.catch_up()] == ["deleted"]


def test_a_damaged_book_and_a_folder_that_is_not_there(opened, folder, caplog):
    library = opened()
    write(folder / "lamp.txt", "The lamp went out at nine.")
    watch(library, folder)
    (library.place.folder / "watched.json").write_text("{")
    assert watch(library, folder) == [("added", "lamp.txt")]
    assert len(library.list()) == 1
    assert "damaged" in caplog.text
    with pytest.raises(DocumentNotFound, match="no folder"):
        Watch(library, [folder / "none"])


def test_files_are_taken_in_as_they_come(opened, folder):
    pytest.importorskip("watchfiles", reason="needs the extra watch")
    library, stop, seen = opened(), threading.Event(), []

    def follow():
        for event in Watch(library, [folder], settled_s=0.2).follow(stop):
            seen.append((event.what, event.path.name))

    thread = threading.Thread(target=follow)
    thread.start()
    (folder / "deep").mkdir()
    (folder / "deep" / "lamp.txt").write_text("The lamp went out at nine.")
    ends = time.monotonic() + 20
    while not seen and time.monotonic() < ends:
        time.sleep(0.1)
    stop.set()
    thread.join(20)
    assert seen == [("added", "lamp.txt")]


def test_on_the_command_line_until_ctrl_c(tmp_path, folder):
    pytest.importorskip("watchfiles", reason="needs the extra watch")
    door = Door(tmp_path, model_cache(), {"GISTREE_MODEL": "http://127.0.0.1:9"})
    write(folder / "lamp.txt", "The lamp went out at nine.")
    process = door.start("watch", folder, "--json")
    try:
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert json.loads(line)["event"] == "added"
    assert b"Traceback" not in said
    assert process.returncode == 130
    assert door("watch", folder, "--once").out == ""
