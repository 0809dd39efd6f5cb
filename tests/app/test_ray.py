"""A batch on a real cluster of Ray's, on this machine: robbed of workers and nodes, and ended."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
from door import Door, model_cache
from fake_server import Answer, FakeServer, events
from tales import LAMP, WELL

from app.batch.batch import Batch
from app.batch.errors import ClusterFailed
from app.batch.journal import Journal
from app.batch.questions import questions
from app.batch.ray_cluster import joined
from app.batch.run import Terms
from app.batch.spread import Spread
from app.library import Library
from app.settings import Settings

pytestmark = pytest.mark.extras
if find_spec("ray") is None:  # it must not be imported before its environment is set
    pytest.skip("needs the extra ray", allow_module_level=True)

ROWS = 24


class Slow(Answer):
    """An answer that takes a while, where a test asks for that."""

    delay_s: ClassVar[float] = 0.0

    def bytes(self):
        time.sleep(self.delay_s)
        return super().bytes()


@pytest.fixture
def slow():
    """Answers take a while until the test calls this: time to break things in."""
    Slow.delay_s = 0.5

    def no_longer():
        Slow.delay_s = 0.0

    yield no_longer
    no_longer()


@pytest.fixture(scope="module")
def server():
    fake = FakeServer()
    fake.say("/v1/models", {"object": "list", "data": [{"id": "parrot", "object": "model"}]})
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None}
    said = events("The schooner ", "Petrel struck the reef.", usage=usage)
    fake.say("/v1/chat/completions", Slow(said))
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module")
def library(home, server):
    settings = Settings(library=str(home / "library"), models=model_cache(), model=server.url)
    with Library(settings=settings) as library:
        library.add(LAMP.encode(), name="lamp.txt")
        library.add(WELL.encode(), name="well.txt")
        yield library


@pytest.fixture(scope="module")
def source(home):
    rows = [
        {"id": f"{name}{n}", "question": f"Which ship struck the reef, {n}?", "document": name}
        for n in range(ROWS // 3)
        for name in ("lamp.txt", "well.txt", "gone.txt")
    ]
    path = home / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(out):
    """Answers without their times, in the order of the file."""
    return [
        {**json.loads(line), "seconds": 0} for line in out.read_text(encoding="utf-8").splitlines()
    ]


@pytest.fixture(scope="module")
def undisturbed(library, source, home):
    """The answers as this process makes them, in order."""
    out = home / "local.jsonl"
    with Batch(library, source, out, in_order=True) as batch:
        list(batch.run())
    return rows_of(out)


@pytest.fixture(scope="module")
def door(home, server):
    """The command line over the library."""
    return Door(home, model_cache(), {"GISTREE_MODEL": server.url})


def begun(process, out):
    """Waits until a batch has some of its rows, and says where they are."""
    rows = out.with_name(f"{out.name}.rows")
    for _ in range(1500):
        assert process.poll() is None, process.stderr.read()
        if rows.exists() and rows.read_bytes().count(b"\n") > 2:
            return rows
        time.sleep(0.1)
    raise AssertionError(f"{rows} has no rows")


def workers(process=None):
    """The processes of Ray's that answer, of this one or another."""
    children = (process or psutil.Process()).children(recursive=True)
    return [child for child in children if "MapWorker" in _command(child)]


def _command(process):
    return " ".join(process.cmdline())


@contextmanager
def joined_through_a_client(on):
    """A cluster whose answers are handed on by one who stands in it, as for ray://."""
    with joined(on) as cluster:
        yield replace(cluster, through_client=True)


def test_workers_that_are_killed_change_nothing(
    library, source, undisturbed, slow, tmp_path, capfd
):
    out, killed = tmp_path / "spread.jsonl", []
    at_sigterm = signal.getsignal(signal.SIGTERM)
    with Journal(out) as journal:
        run = Spread(library, journal, Terms(), "local", join=joined_through_a_client)
        for _ in run.run(questions(source)):
            if not killed:
                killed = workers()
                for worker in killed:
                    worker.kill()
                assert len(journal.status) < ROWS / 2
                slow()
    assert killed
    assert sorted(rows_of(out), key=lambda row: row["row"]) == undisturbed
    assert capfd.readouterr().out == ""
    assert psutil.Process().children(recursive=True) == []
    assert signal.getsignal(signal.SIGTERM) == at_sigterm
    assert not [name for name in os.environ if name.startswith("RAY_")]


def test_ctrl_c_leaves_nothing_of_ray_and_the_same_command_goes_on_without_it(
    source, undisturbed, slow, door, tmp_path
):
    out = tmp_path / "answers.csv"
    command = ("batch", source, "--out", out, "--in-order")
    running = door.start(*command, "--on", "local")
    rows = begun(running, out)
    family = psutil.Process(running.pid).children(recursive=True)
    assert workers(psutil.Process(running.pid))
    (folder,) = {f for child in family for f in re.findall(r"/tmp/gistree-\w+", _command(child))}
    running.send_signal(signal.SIGINT)
    slow()
    said, errors = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, b"")
    assert b"ray" not in errors.lower()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert not Path(folder).exists()
    kept = rows.read_bytes()
    assert 2 < kept.count(b"\n") < ROWS
    assert out.exists()
    done = door(*command)
    assert done.code == 3, done.err  # the rows about a document that is not there
    assert rows.read_bytes().startswith(kept)
    assert sorted(rows_of(rows), key=lambda row: row["row"]) == undisturbed


@pytest.fixture
def nodes():
    """A process that keeps a cluster of two nodes, and its address."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).parent / "ray_nodes.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        text=True,
    )
    while not re.fullmatch(r"[\d.]+:\d+\n", address := process.stdout.readline()):
        assert process.poll() is None
    yield process, address.strip()
    process.communicate(timeout=60)


def test_a_node_that_is_lost_changes_nothing(source, undisturbed, slow, nodes, door, tmp_path):
    process, on = nodes
    out = tmp_path / "answers.csv"
    running = door.start("batch", source, "--out", out, "--in-order", "--on", on)
    rows = begun(running, out)
    process.stdin.write("lose it\n")
    process.stdin.flush()
    assert rows.read_bytes().count(b"\n") < ROWS / 2
    slow()
    said, errors = running.communicate(timeout=120)
    assert (running.returncode, said) == (3, b""), errors
    assert sorted(rows_of(rows), key=lambda row: row["row"]) == undisturbed


def test_a_cluster_that_is_not_there_is_named(library, source, tmp_path):
    with (
        Batch(library, source, tmp_path / "a.jsonl", on="127.0.0.1:9") as batch,
        pytest.raises(ClusterFailed, match=r"127\.0\.0\.1:9"),
    ):
        list(batch.run())
