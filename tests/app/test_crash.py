"""A process that adds or deletes is killed at random moments; the library is as if it were not."""

import itertools
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "crash_worker.py"


def tale(number: int) -> str:
    rng = random.Random(number)
    words = ["lamp", "reef", "storm", "tower", "oil", "sailor", "well", "miller", "schooner"]
    paragraphs = [
        " ".join(rng.choice(words) for _ in range(60)).capitalize() + f" {number}."
        for _ in range(60)
    ]
    return f"Tale {number}\n\n" + "\n\n".join(paragraphs)


@pytest.fixture
def tales(tmp_path):
    paths = []
    for number in range(6):
        path = tmp_path / f"tale-{number}.txt"
        path.write_text(tale(number), encoding="utf-8")
        paths.append(path)
    return paths


def start(place: Path, action: str, files) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(place), action, *map(str, files)],
        stdout=subprocess.PIPE,
        text=True,
    )


def check(library) -> None:
    """Nothing half-visible, nothing orphaned, nothing doubled."""
    entries = library.list()
    assert len({e.id for e in entries}) == len(entries)
    for entry in entries:
        document = library.document(entry.id)
        assert document.text
        assert library.file(entry.id).exists()
        chunks = library._store.chunks(entry.id)
        vectors = library._store.vectors(entry.id, library.embedder.name)
        assert vectors is not None
        assert len(vectors) == len(chunks) > 0
        for left, right in itertools.pairwise(chunks):
            assert left.end <= right.start
    kept = {library.file(e.id) for e in entries}
    assert {p for p in (library.place.files).rglob("*") if p.is_file()} == kept
    if entries:
        found = library.search("lamp reef storm", top_k=1000)
        assert {c.document_id for c in found} <= {e.id for e in entries}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_killed_while_adding(opened, tales, tmp_path, seed):
    place = tmp_path / "library"
    worker = start(place, "add", tales)
    assert worker.stdout.readline() == "ready\n"
    time.sleep(random.Random(seed).uniform(0.0, 1.6))
    worker.send_signal(signal.SIGKILL)
    said = worker.stdout.read().split("\n")
    worker.wait()
    worker.stdout.close()
    done = {line.removeprefix("add ") for line in said if line.startswith("add ")}
    library = opened(place=place)
    assert done <= {e.name for e in library.list()}
    library.finish_interrupted()
    assert library._store.entries(state="reading") == []
    check(library)
    for path in tales:
        library.add(path)
    assert sorted(e.name for e in library.list()) == sorted(p.name for p in tales)
    check(library)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_killed_while_deleting(opened, tales, tmp_path, seed):
    library = opened()
    for path in tales:
        library.add(path)
    library.search("lamp")
    library.close()
    worker = start(tmp_path / "library", "delete", tales)
    assert worker.stdout.readline() == "ready\n"
    time.sleep(random.Random(seed).uniform(0.0, 0.4))
    worker.send_signal(signal.SIGKILL)
    said = worker.stdout.read().split("\n")
    worker.wait()
    worker.stdout.close()
    gone = {line.removeprefix("delete ") for line in said if line.startswith("delete ")}
    library = opened()
    assert not gone & {e.name for e in library.list()}
    check(library)


def test_two_processes_add_the_same_files(opened, tales, tmp_path):
    workers = [start(tmp_path / "library", "add", tales) for _ in range(2)]
    for worker in workers:
        said = worker.communicate(timeout=120)[0]
        assert worker.returncode == 0
        assert said.count("add tale-") == len(tales)
    library = opened()
    assert len(library.list()) == len(tales)
    check(library)
