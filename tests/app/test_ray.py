"""A batch on a real cluster of Ray's, on this machine: robbed of workers and nodes, and ended."""

import json
import re
import signal
import socket
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from door import Door, model_cache
from fake_server import Answer, FakeServer, events

from app.batch.batch import Batch
from app.batch.errors import ClusterFailed
from app.library import Library
from app.settings import Settings

pytestmark = pytest.mark.extras
if find_spec("ray") is None:  # it must not be imported before its environment is set
    pytest.skip("needs the extra ray", allow_module_level=True)

ROWS = 24


class Slow(Answer):
    """An answer that takes a while."""

    def bytes(self):
        time.sleep(0.1)
        return super().bytes()


@pytest.fixture
def server():
    fake = FakeServer()
    fake.say("/v1/models", {"object": "list", "data": [{"id": "parrot", "object": "model"}]})
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None}
    said = events("The schooner ", "Petrel struck the reef.", usage=usage)
    fake.say("/v1/chat/completions", Slow(said))
    yield fake
    fake.close()


@pytest.fixture
def library(tmp_path, lamp, well, server):
    settings = Settings(library=str(tmp_path / "library"), models=model_cache(), model=server.url)
    with Library(settings=settings) as library:
        library.add(lamp)
        library.add(well)
        yield library


@pytest.fixture
def source(tmp_path):
    rows = [
        {"id": f"{name}{n}", "question": f"Which ship struck the reef, {n}?", "document": name}
        for n in range(ROWS // 3)
        for name in ("lamp.txt", "well.txt", "gone.txt")
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(out):
    """Answers without their times, in the order of the file."""
    return [
        {**json.loads(line), "seconds": 0} for line in out.read_text(encoding="utf-8").splitlines()
    ]


@pytest.fixture
def undisturbed(library, source, tmp_path):
    """The answers as this process makes them, in order."""
    out = tmp_path / "local.jsonl"
    with Batch(library, source, out, in_order=True) as batch:
        list(batch.run())
    return rows_of(out)


def workers(process=None):
    """The processes of Ray's that answer, of this one or another."""
    children = (process or psutil.Process()).children(recursive=True)
    return [child for child in children if "MapWorker" in _command(child)]


def _command(process):
    return " ".join(process.cmdline())


def test_workers_that_are_killed_change_nothing(library, source, undisturbed, tmp_path, capfd):
    out, killed = tmp_path / "spread.jsonl", []
    with Batch(library, source, out, in_order=True, on="local") as batch:
        for _ in batch.run():
            if not killed:
                killed = workers()
                for worker in killed:
                    worker.kill()
                assert batch.finished < ROWS / 2
    assert killed
    assert rows_of(out) == undisturbed
    assert capfd.readouterr().out == ""
    assert psutil.Process().children(recursive=True) == []


def test_ctrl_c_leaves_nothing_of_ray_and_the_same_command_goes_on_without_it(
    library, source, undisturbed, server, tmp_path
):
    door = Door(tmp_path, model_cache(), {"GISTREE_MODEL": server.url})
    out = tmp_path / "answers.csv"
    command = ("batch", source, "--out", out, "--in-order")
    running = door.start(*command, "--on", "local")
    rows = tmp_path / "answers.csv.rows"
    for _ in range(600):
        if rows.exists() and rows.read_bytes().count(b"\n") > 2:
            break
        time.sleep(0.1)
    family = psutil.Process(running.pid).children(recursive=True)
    assert workers(psutil.Process(running.pid))
    (folder,) = {f for child in family for f in re.findall(r"/tmp/gistree-\w+", _command(child))}
    running.send_signal(signal.SIGINT)
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


# Ray's own cluster for tests leaves files of its log open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_node_that_is_lost_changes_nothing(library, source, undisturbed, tmp_path, monkeypatch):
    """A cluster of two nodes that is spoken to from outside; one of them is killed."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out, lost = tmp_path / "spread.jsonl", False
    head = {
        "num_cpus": 1,
        "ray_client_server_port": port,
        "include_dashboard": False,
        "_system_config": {  # it looks for dead nodes more often
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 500,
            "health_check_timeout_ms": 2_000,
            "health_check_failure_threshold": 3,
        },
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        node = cluster.add_node(num_cpus=1)
        on = f"ray://127.0.0.1:{port}"
        with Batch(library, source, out, in_order=True, on=on) as batch:
            for _ in batch.run():
                if not lost:
                    cluster.remove_node(node, allow_graceful=False)
                    lost = True
                    assert batch.finished < ROWS / 2
        assert rows_of(out) == undisturbed
    finally:
        cluster.shutdown()


def test_a_cluster_that_is_not_there_is_named(library, source, tmp_path):
    with (
        Batch(library, source, tmp_path / "a.jsonl", on="127.0.0.1:9") as batch,
        pytest.raises(ClusterFailed, match=r"127\.0\.0\.1:9"),
    ):
        list(batch.run())
