import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.estimate import Estimate
from app.job_run import run_job
from app.owner import new_owner
from app.progress import Progress
from app.uploads import Uploads

PETREL = b"The schooner Petrel struck the reef in March and sank."


def upload(library, data=PETREL, name="petrel.txt"):
    return Uploads(library.place.folder).receive(name, [data[:10], data[10:]])


def work(library) -> None:
    """Does what is queued, as a foreman would."""
    for job in library.jobs.list():
        owner = new_owner()
        if library.jobs.book.claim(job.id, owner=owner, now=time.time()):
            run_job(library, job, owner=owner, secret=library.jobs.take_secret(job.id))


def incoming(library):
    return list((library.place.folder / "incoming").glob("*"))


def test_an_upload_becomes_a_document(opened):
    library = opened()
    job = library.jobs.add(upload(library), tags=["sea"])
    assert (job.state, job.name) == ("queued", "petrel.txt")
    work(library)
    done = library.jobs.get(job.id)
    assert (done.state, done.said) == ("done", "10 words, 1 of 1 parts")
    entry = library.show("petrel.txt")
    assert entry.id == job.document_id
    assert entry.tags == ("sea",)
    assert incoming(library) == []


def test_the_same_bytes_again_are_recognised(opened):
    library = opened()
    library.jobs.add(upload(library))
    library.jobs.add(upload(library, name="again.txt"))
    work(library)
    assert library.jobs.list()[1].said == "was in the library already, as petrel"
    assert len(library.list()) == 1


def test_what_cannot_be_read_fails_in_words_and_can_be_tried_again(opened):
    library = opened()
    job = library.jobs.add(upload(library, b"%PDF-1.4 nothing", "broken.pdf"))
    work(library)
    failed = library.jobs.get(job.id)
    assert failed.state == "failed"
    assert "broken.pdf" in failed.said
    assert failed.error == "UnreadableDocument"
    assert library.jobs.retry(job.id)
    assert library.jobs.get(job.id).state == "queued"
    work(library)
    assert library.jobs.dismiss(job.id)
    assert library.jobs.list() == ()
    assert incoming(library) == []


def test_a_password_is_used_and_kept_nowhere(opened, monkeypatch):
    library = opened()
    given = []

    def add(path, *, password, **_):
        given.append(password)
        raise ValueError("no matter")

    monkeypatch.setattr(library, "add", add)
    job = library.jobs.add(upload(library))
    work(library)
    library.jobs.retry(job.id, password="open sesame")
    work(library)
    assert given == [None, "open sesame"]
    assert b"open sesame" not in b"".join(
        path.read_bytes() for path in library.place.folder.rglob("*") if path.is_file()
    )


def test_a_queued_job_can_be_paused_resumed_and_cancelled(opened):
    library = opened()
    job = library.jobs.add(upload(library))
    assert library.jobs.pause(job.id)
    work(library)
    assert library.jobs.get(job.id).state == "paused"
    assert library.jobs.resume(job.id)
    assert library.jobs.cancel(job.id)
    assert library.jobs.get(job.id) is None
    assert incoming(library) == []
    assert not library.jobs.pause(job.id)


def test_cancelling_a_half_read_document_leaves_nothing(opened, monkeypatch):
    library = opened()
    job = library.jobs.add(upload(library))
    owner = new_owner()
    library.jobs.book.claim(job.id, owner=owner, now=time.time())
    with monkeypatch.context() as patch:
        patch.setattr(
            type(library.embedder), "embed", lambda *_: signal.raise_signal(signal.SIGINT)
        )
        with pytest.raises(KeyboardInterrupt):
            run_job(library, job, owner=owner, secret="")
    assert len(library._store.entries(state="reading")) == 1
    library.jobs.book.move(job.id, to="cancelling", of=["running"], owner="")
    library.jobs.settle(job.id)
    assert library.jobs.list() == ()
    assert library._store.entries(state=None) == []
    assert [p for p in library.place.files.rglob("*") if p.is_file()] == []


def test_cancelling_never_removes_a_document_that_was_there_before(opened):
    library = opened()
    library.jobs.add(upload(library))
    work(library)
    again = library.jobs.add(upload(library))
    library.jobs.cancel(again.id)
    assert [entry.name for entry in library.list()] == ["petrel.txt"]


def test_a_deletion_waits_and_can_be_taken_back(opened, lamp):
    library = opened()
    book = library.add(lamp)
    job = library.jobs.delete(book.id)
    assert 8 < job.not_before - time.time() < 11
    assert library.jobs.delete(book.id) == job
    assert library.jobs.cancel(job.id)
    assert library.list()
    library.jobs.delete(book.id)
    work(library)
    assert library.list() == ()


def test_a_fault_of_ours_is_written_down_and_logged(opened, monkeypatch, caplog):
    library = opened()
    library.jobs.add(upload(library))
    monkeypatch.setattr(library, "add", lambda *_, **__: 1 / 0)
    work(library)
    assert library.jobs.list()[0].error == "ZeroDivisionError"
    assert "a fault of gistree" in caplog.text


def test_progress_is_written_down_only_by_who_has_the_job(opened):
    library = opened()
    book = library.jobs.book
    job = library.jobs.add(upload(library))
    far = {"stage": "read", "done": 3, "total": 9, "seconds_left": 6.0}
    assert not book.tell(job.id, owner="a", now=1.0, **far)
    assert book.claim(job.id, owner="a", now=1.0)
    assert not book.claim(job.id, owner="b", now=1.0)
    assert book.tell(job.id, owner="a", now=2.0, **far)
    assert not book.tell(job.id, owner="b", now=2.0, **far)
    told = library.jobs.get(job.id)
    assert (told.stage, told.done, told.total, told.seconds_left) == ("read", 3, 9, 6.0)
    library.jobs.pause(job.id)
    assert not book.end(job.id, owner="a", said="done")


def test_uploads_that_nobody_waits_for_go_after_an_hour(opened):
    library = opened()
    kept = library.jobs.add(upload(library))
    stray = upload(library, b"stray", "stray.txt")
    fresh = upload(library, b"fresh", "fresh.txt")
    uploads = Uploads(library.place.folder)
    for one in (uploads.path(stray.id), *incoming(library)):
        if one.name != fresh.id:
            os.utime(one, (1, 1))
    library.jobs.tidy()
    assert {path.name for path in incoming(library)} == {
        fresh.id,
        library.jobs.get(kept.id).work.split('"')[3],
    }


def test_several_sweep_at_once(tmp_path):
    uploads = Uploads(tmp_path)
    for number in range(300):
        kept = uploads.receive(f"{number}.txt", [b"%d" % number])
        os.utime(uploads.path(kept.id), (1, 1))
    there = len(list(uploads.folder.iterdir()))
    with ThreadPoolExecutor(8) as pool:
        swept = pool.map(lambda _: uploads.sweep(()), range(8))
    assert sum(swept) == there  # each file by one of them
    assert list(uploads.folder.iterdir()) == []


def test_an_upload_that_breaks_off_leaves_nothing(opened):
    library = opened()

    def blocks():
        yield b"some"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        Uploads(library.place.folder).receive("x.txt", blocks())
    assert incoming(library) == []


def test_time_left_comes_from_the_pace_of_the_stage():
    now = 0.0
    estimate = Estimate(lambda: now)

    def at(moment, done, stage="read"):
        nonlocal now
        now = moment
        return estimate.seconds_left(Progress("x", stage, done, 100))

    assert at(0, 0) is None
    assert at(1, 10) is None
    assert at(5, 50) == 5
    assert at(6, 0, "embed") is None
    assert at(10, 20, "embed") == 16
