import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.shelf_files import Files, digest, file_name


def test_a_file_appears_whole_under_the_name_of_its_bytes(tmp_path):
    source = tmp_path / "a.PDF"
    source.write_bytes(b"x" * 3_000_000)
    name = file_name(digest(source), source.suffix)
    told = []
    target = Files(tmp_path / "files").put(source, name, told.append)
    assert target.read_bytes() == source.read_bytes()
    assert name.endswith(".pdf")
    assert told[-1] == 3_000_000
    assert sorted(told) == told


def test_a_file_is_removed_and_what_lies_beside_it_stays(tmp_path):
    source = tmp_path / "a.txt"
    source.write_bytes(b"x")
    files = Files(tmp_path / "files")
    files.put(source, "aa/one.txt", lambda _: None)
    files.put(source, "aa/two.txt", lambda _: None)
    files.remove("aa/one.txt")
    assert files.path("aa/two.txt").exists()
    files.remove("aa/two.txt")
    files.remove("aa/two.txt")
    assert not files.has_any


def test_files_come_while_others_beside_them_go(tmp_path):
    source = tmp_path / "a.txt"
    source.write_bytes(b"x")
    files, ended = Files(tmp_path / "files"), threading.Event()

    def come_and_go():
        while not ended.is_set():
            files.put(source, "aa/passing.txt", lambda _: None)
            files.remove("aa/passing.txt")

    with ThreadPoolExecutor() as pool:
        other = pool.submit(come_and_go)
        try:
            for number in range(300):
                files.put(source, f"aa/{number}.txt", lambda _: None)
                files.orphans(list)
                files.remove(f"aa/{number}.txt")
        finally:
            ended.set()
        other.result()


def test_a_copy_that_fails_leaves_nothing(tmp_path):
    source = tmp_path / "a.txt"
    source.write_bytes(b"x" * 3_000_000)

    def full(_done: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    files = Files(tmp_path / "files")
    with pytest.raises(OSError, match="No space"):
        files.put(source, "aa/one.txt", full)
    assert [p for p in files.folder.rglob("*") if p.is_file()] == []


def test_sweeping_takes_orphans_and_dead_halves_only(tmp_path):
    files = Files(tmp_path / "files")
    folder = files.folder / "aa"
    folder.mkdir(parents=True)
    dead = 2**22 + 1  # above the largest process number
    for name in ("kept.txt", "orphan.txt", f".incoming-{dead}-x", f".incoming-{os.getpid()}-x"):
        (folder / name).write_bytes(b"x")
    removed = {path.name for path in files.sweep(lambda: ["aa/kept.txt"])}
    assert removed == {"orphan.txt", f".incoming-{dead}-x"}


def test_a_file_that_comes_while_sweeping_stays(tmp_path):
    source = tmp_path / "a.txt"
    source.write_bytes(b"x")
    files = Files(tmp_path / "files")
    files.put(source, "aa/old.txt", lambda _: None)

    def known():
        files.put(source, "bb/new.txt", lambda _: None)
        return []

    assert [path.name for path in files.sweep(known)] == ["old.txt"]
    assert files.path("bb/new.txt").exists()
