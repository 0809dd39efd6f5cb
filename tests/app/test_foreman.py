"""Jobs done by processes of their own, which are killed as a person or a crash would."""

import os
import signal
import time

import pytest
from door import model_cache

from app.foreman import MOST_ATTEMPTS, Foreman
from app.library import Library
from app.settings import Settings
from app.uploads import Uploads

LONG = "\n\n".join(
    f"Paragraph {number} tells of lamps, reefs, storms, towers, wells and {number} sailors."
    for number in range(20_000)
)


@pytest.fixture
def library(tmp_path):
    settings = Settings(
        library=str(tmp_path / "library"), models=model_cache(), model="http://127.0.0.1:9"
    )
    with Library(settings=settings) as library:
        yield library


def add(library, text, name="tale.txt"):
    return library.jobs.add(Uploads(library.place.folder).receive(name, [text.encode()]))


def until(met, seconds=60.0):
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)


def embedding(library, job):
    return lambda: library.jobs.get(job.id).stage == "embed" and library.jobs.get(job.id).done > 0


def worker_of(library, job) -> int:
    return int(library.jobs.get(job.id).owner.split(":")[1])


def test_jobs_are_done_one_after_the_other_by_another_process(library):
    first, second = add(library, "A lamp."), add(library, "A reef.", "reef.txt")
    with Foreman(library):
        until(lambda: {job.state for job in library.jobs.list()} == {"done"})
    assert {first.document_id, second.document_id} == {e.id for e in library.list()}


@pytest.mark.slow
def test_a_pause_stops_the_work_and_resuming_goes_on_from_there(library):
    job = add(library, LONG)
    with Foreman(library):
        until(embedding(library, job))
        pid = worker_of(library, job)
        library.jobs.pause(job.id)
        until(lambda: not os.path.exists(f"/proc/{pid}"), 5)
        done = library.jobs.get(job.id).done
        library.jobs.resume(job.id)
        until(lambda: library.jobs.get(job.id).stage == "embed")
        assert library.jobs.get(job.id).done >= done


@pytest.mark.slow
def test_cancelling_takes_seconds_and_leaves_nothing(library):
    job = add(library, LONG)
    with Foreman(library):
        until(embedding(library, job))
        library.jobs.cancel(job.id)
        until(lambda: library.jobs.get(job.id) is None, 5)
    assert library._store.entries(state=None) == []
    assert list((library.place.folder / "incoming").glob("*")) == []


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_the_work_goes_on(library):
    job = add(library, LONG[:200_000])
    with Foreman(library):
        until(embedding(library, job))
        os.kill(worker_of(library, job), signal.SIGKILL)
        until(lambda: library.jobs.get(job.id).state == "done", 120)
    assert library.jobs.get(job.id).attempts == 2


@pytest.mark.slow
def test_a_job_that_kills_its_worker_every_time_is_given_up(library):
    job = add(library, LONG)
    with Foreman(library):
        for attempt in range(1, MOST_ATTEMPTS + 1):
            until(lambda: library.jobs.get(job.id).state == "running")
            until(lambda n=attempt: library.jobs.get(job.id).attempts == n)
            os.kill(worker_of(library, job), signal.SIGKILL)
        until(lambda: library.jobs.get(job.id).state == "failed", 10)
    assert "3 times" in library.jobs.get(job.id).said


@pytest.mark.slow
def test_what_one_foreman_left_the_next_one_finishes(library):
    job = add(library, LONG[:200_000])
    with Foreman(library):
        until(embedding(library, job))
    assert library.jobs.get(job.id).state == "queued"
    with Foreman(library):
        until(lambda: library.jobs.get(job.id).state == "done", 120)


def test_a_deletion_is_done_when_its_moment_is_over(library):
    entry = library.add(b"A lamp.", name="lamp.txt")
    with Foreman(library):
        library.jobs.delete(entry.id, wait_s=0.3)
        assert library.list()
        until(lambda: not library.list(), 5)
        until(lambda: library.jobs.list() == (), 5)
