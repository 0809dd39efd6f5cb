"""Many files at once."""

import errno
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.bulk import add_many, expanded
from app.progress import Progress, silent
from memory.errors import DocumentError, DocumentNotFound


@pytest.fixture
def shelf(tmp_path):
    folder = tmp_path / "shelf"
    (folder / "deep").mkdir(parents=True)
    for number in range(9):
        text = f"Tale {number} tells of {number + 3} sailors and of the lamp that they lit. " * 9
        (folder / "deep" / f"tale-{number}.txt").write_text(text)
    (folder / "same.txt").write_bytes((folder / "deep" / "tale-0.txt").read_bytes())
    (folder / "bad.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / "empty.txt").write_bytes(b"")
    (folder / ".hidden.txt").write_text("A system's own.")
    return folder


def test_several_at_a_time_come_to_the_same_as_one_by_one(opened, shelf, tmp_path):
    one = opened(place=tmp_path / "one").add_folder(shelf)
    library = opened(place=tmp_path / "four")
    added, failed = library.add_folder(shelf, workers=4)
    assert [entry.id for entry in added] == [entry.id for entry in one[0]]
    assert [failure.path.name for failure in failed] == ["bad.pdf", "empty.txt"]
    assert [str(failure.error) for failure in failed] == [str(f.error) for f in one[1]]
    assert len(library.list()) == 9  # the same bytes twice are one document
    assert list(library.check()) == []
    assert library.search("sailors", top_k=3)


def test_a_second_pass_reads_nothing(opened, shelf):
    library = opened()
    library.add_folder(shelf, workers=3)
    seen = []
    library.add_folder(shelf, workers=3, on_progress=seen.append)
    assert {p.stage for p in seen if p.name.startswith(("tale", "same"))} == {"done"}


def test_a_folder_at_whose_contents_others_are_at_work(shelf, tmp_path):
    ended = threading.Event()

    def come_and_go():
        while not ended.is_set():
            folder = shelf / "passing" / "deeper"
            folder.mkdir(parents=True)
            (folder / "passing.txt").write_text("here and gone")
            shutil.rmtree(shelf / "passing")

    with ThreadPoolExecutor() as pool:
        other = pool.submit(come_and_go)
        try:
            for _ in range(300):
                found = {path.name for path in expanded(str(shelf), but=tmp_path / "library")[0]}
                assert len(found - {"passing.txt"}) == 12
        finally:
            ended.set()
        other.result()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_folder_that_cannot_be_looked_into_is_told(opened, shelf, refused, number):
    (shelf / ".hidden").mkdir()
    refused[str(shelf / "deep")] = refused[str(shelf / ".hidden")] = number
    added, failed = opened().add_folder(shelf)
    assert [entry.name for entry in added] == ["same.txt"]
    assert {failure.path.name for failure in failed} == {"bad.pdf", "empty.txt", "deep"}
    refused[str(shelf)] = number
    added, (failure,) = opened().add_folder(shelf)
    assert not added
    assert str(failure.error) == f"{shelf} cannot be looked at: no such luck"


def test_a_folder_without_permission(opened, shelf):
    (shelf / "deep").chmod(0)
    if os.access(shelf / "deep", os.R_OK):
        pytest.skip("this person may look everywhere, as root may")
    try:
        added, failed = opened().add_folder(shelf)
    finally:
        (shelf / "deep").chmod(0o700)
    assert [entry.name for entry in added] == ["same.txt"]
    assert f"{shelf / 'deep'} cannot be looked at: Permission denied" in map(
        str, (failure.error for failure in failed)
    )


def test_so_many_at_a_time_and_no_more(tmp_path):
    at_work, most, together = 0, 0, threading.Barrier(3)
    lock = threading.Lock()

    def add(path, tell):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        together.wait(10)
        with lock:
            at_work -= 1
        raise DocumentError(path.name)

    paths = [tmp_path / str(n) for n in range(12)]
    ended = dict(add_many(add, paths, workers=3, on_progress=silent))
    assert set(ended) == set(paths)
    assert most == 3


def test_the_end_of_the_run_ends_what_is_being_read(tmp_path):
    ended = []

    def add(path, tell):
        try:
            if path.name == "0":
                raise DocumentError("first")
            while True:
                tell(Progress(path.name, "read"))
                time.sleep(0.01)
        finally:
            ended.append(path.name)

    run = add_many(add, [tmp_path / str(n) for n in range(9)], workers=3, on_progress=silent)
    next(run)
    run.close()
    assert "0" in ended
    assert len(ended) <= 4  # what had not begun never begins


def test_what_was_interrupted_goes_on(opened, shelf, monkeypatch):
    library = opened()
    run = library.add_many(sorted(shelf.rglob("tale*")), workers=3)
    next(run)
    run.close()
    library.finish_interrupted()
    assert list(library.check()) == []
    added, _ = library.add_folder(shelf, workers=3)
    assert len(library.list()) == 9
    assert len(added) == 10


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", {"same.txt", "empty.txt"}),
        ("**/tale-[12].txt", {"tale-1.txt", "tale-2.txt"}),
        ("deep", {f"tale-{n}.txt" for n in range(9)}),
        ("bad.pdf", {"bad.pdf"}),
        ("none.pdf", {"none.pdf"}),  # whoever adds it says that it is not there
    ],
)
def test_files_folders_and_patterns(shelf, tmp_path, pattern, names):
    found, _ = expanded(str(shelf / pattern), but=tmp_path / "library")
    assert {path.name for path in found} == names


def test_a_pattern_that_nothing_fits_and_a_file_named_like_one(shelf, tmp_path):
    with pytest.raises(DocumentNotFound, match="no file fits"):
        expanded(str(shelf / "*.docx"), but=tmp_path)
    (shelf / "notes [1].txt").write_text("x")
    found, _ = expanded(str(shelf / "notes [1].txt"), but=tmp_path / "l")
    assert found == [shelf / "notes [1].txt"]
