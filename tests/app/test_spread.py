"""A batch on a cluster, with a cluster that is this process."""

import contextlib
import json
import pickle
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from door import model_cache
from sqlalchemy import make_url
from tales import LAMP, WELL

from agents.fields import fields_of
from app.batch.attempts import Attempts
from app.batch.batch import Batch
from app.batch.errors import ClusterFailed
from app.batch.journal import Journal
from app.batch.piece_worker import PieceWorker
from app.batch.pieces import pieces, room
from app.batch.questions import Row, questions
from app.batch.ray_cluster import Cluster
from app.batch.run import RowDone, Runner, Terms
from app.batch.spread import Spread, named
from app.batch.table import cells
from app.library import Library
from app.models import choose_model
from app.settings import Settings
from serving.errors import MissingExtra, ModelNotFound


class FakeCluster(Cluster):
    """One worker, in this process."""

    __slots__ = ()

    def answers(self, pieces, errand, *, workers, cpus):
        worker = PieceWorker(pickle.loads(pickle.dumps(errand)))
        for piece in pieces:
            for sent in worker({"piece": [pickle.dumps(piece)]}):
                yield pickle.loads(sent["said"][0])


class Stumbling(FakeCluster):
    """Its worker is lost after two answers of each piece, and another one does the piece."""

    __slots__ = ()

    def answers(self, pieces, errand, *, workers, cpus):
        for piece in pieces:
            again = FakeCluster.answers(self, [piece[:2], piece], errand, workers=1, cpus=1)
            yield from again


HERE = FakeCluster(cpus=2, cpus_of_least=2, is_here=True, through_client=False)


def joining(cluster):
    @contextmanager
    def join(on):
        yield cluster

    return join


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def library(home, model_server):
    settings = Settings(library=str(home / "library"), models=model_cache(), model=model_server.url)
    with Library(settings=settings) as library:
        library.add(LAMP.encode(), name="lamp.txt")
        library.add(WELL.encode(), name="well.txt")
        yield library


@pytest.fixture(scope="module")
def source(home):
    rows = [
        {"id": f"{name}{n}", "question": f"Which ship struck the reef, {n}?", "document": name}
        for n in range(4)
        for name in ("lamp.txt", "well.txt", "gone.txt")
    ]
    path = home / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def spread(library, source, out, cluster=HERE, **options):
    """The events of a batch, and its rows as they were kept, without their times."""
    with Journal(out) as journal:
        run = Spread(library, journal, Terms(), "fake", join=joining(cluster), **options)
        events = list(run.run(questions(source)))
        return events, [{**row, "seconds": 0} for row in journal.rows()]


def sizes(*rows_of_each, **options):
    """Names of the documents in each piece, where documents have so many rows."""
    names = [str(at) for at, count in enumerate(rows_of_each) for _ in range(count)]
    rows = [Row(number, "", "?", (name,)) for number, name in enumerate(names)]
    return ["".join(row.documents[0] for row in piece) for piece in pieces(rows, **options)]


def test_rows_of_a_document_stay_together_and_small_documents_share_a_piece():
    assert sizes(2, 3, 1, 1, room=3) == ["00", "111", "23"]
    assert sizes(5, 1, room=1) == ["00000", "1"]
    assert [len(piece) for piece in sizes(70, 2, room=8)] == [32, 32, 8]
    assert sizes(room=4) == []


def test_every_worker_gets_pieces():
    assert room(24, 2) == 3
    assert room(3, 8) == 1
    assert room(10_000, 8) == 32


def test_a_cluster_answers_as_this_process_does(library, source, tmp_path):
    events, rows = spread(library, source, tmp_path / "spread.jsonl")
    with Batch(library, source, tmp_path / "local.jsonl") as batch:
        list(batch.run())
    lines = (tmp_path / "local.jsonl").read_text(encoding="utf-8").splitlines()
    local = [{**json.loads(line), "seconds": 0} for line in lines]
    assert sorted(rows, key=lambda r: r["row"]) == sorted(local, key=lambda r: r["row"])
    assert {row["status"] for row in rows if row["id"].startswith("gone")} == {"error"}
    assert sum(event.usage.calls for event in events) > 0
    assert all(isinstance(event, RowDone) for event in events)


def test_cells_of_a_table_are_asked_there_as_here(library, tmp_path):
    fields = fields_of({"properties": {"ship": {"type": "string", "description": "Which ship?"}}})
    rows = list(cells(fields, [entry.id for entry in library.list()]))
    with Journal(tmp_path / "here.jsonl") as here, Journal(tmp_path / "there.jsonl") as there:
        list(Runner(library, here).run(rows))
        list(Spread(library, there, Terms(), "fake", join=joining(HERE)).run(rows))
        local, spread_out = ([{**row, "seconds": 0} for row in j.rows()] for j in (here, there))
    assert {row["field"] for row in local} == {"ship"}
    assert spread_out == local


def test_what_a_lost_worker_had_answered_is_kept_once(library, source, tmp_path):
    cluster = Stumbling(cpus=2, cpus_of_least=2, is_here=True, through_client=False)
    events, rows = spread(library, source, tmp_path / "a.jsonl", cluster)
    assert sorted(row["row"] for row in rows) == list(range(12))
    assert len(events) == 12


def test_rows_of_which_nothing_was_heard_are_asked_again(library, source, tmp_path):
    class Forgetful(FakeCluster):
        __slots__ = ()

        def answers(self, pieces, errand, *, workers, cpus):
            for piece in pieces:
                yield from FakeCluster.answers(self, [piece[: len(piece) // 2 + 1]], errand, **one)

    one = {"workers": 1, "cpus": 1}
    cluster = Forgetful(cpus=2, cpus_of_least=2, is_here=True, through_client=False)
    _, rows = spread(library, source, tmp_path / "a.jsonl", cluster)
    assert sorted(row["row"] for row in rows) == list(range(12))


def test_a_cluster_that_answers_nothing_does_not_keep_one_waiting(library, source, tmp_path):
    class Silent(FakeCluster):
        __slots__ = ()

        def answers(self, pieces, errand, *, workers, cpus):
            yield from ()

    cluster = Silent(cpus=2, cpus_of_least=2, is_here=True, through_client=False)
    with pytest.raises(ClusterFailed, match="without an answer to 12 rows"):
        spread(library, source, tmp_path / "a.jsonl", cluster)


def test_a_row_that_ends_its_worker_every_time_fails_and_stops_no_other(
    library, source, tmp_path, monkeypatch
):
    """The worker "ends" by an exception that nothing in it knows."""

    class Killed(BaseException):
        pass

    def read(question, **options):
        if "2" in question:
            raise Killed
        return Library.read(library, question, **options)

    class Fragile(FakeCluster):
        __slots__ = ()

        def answers(self, pieces, errand, *, workers, cpus):
            for piece in pieces:
                while True:  # as Ray does
                    worker = PieceWorker(errand)
                    worker._library = library
                    left = worker({"piece": [pickle.dumps(piece)]})
                    try:
                        yield from (pickle.loads(sent["said"][0]) for sent in left)
                        break
                    except Killed:
                        continue

    monkeypatch.setattr(Attempts, "of", never_forgotten())
    monkeypatch.setattr(library, "read", read)
    cluster = Fragile(cpus=2, cpus_of_least=2, is_here=True, through_client=False)
    _, rows = spread(library, source, tmp_path / "a.jsonl", cluster)
    assert len(rows) == 12
    fatal = [row for row in rows if "died each time" in row["error"]]
    # That there is no such document as "gone.txt" is known before anything is read.
    assert sorted(row["id"] for row in fatal) == ["lamp.txt2", "well.txt2"]


def never_forgotten():
    """``Attempts.of`` as it is for a process that is killed: nothing is tidied up."""
    counts = Counter()

    @contextmanager
    def of(self, work):
        counts[work] += 1
        yield counts[work]

    return of


def test_attempts_are_counted_across_processes_and_forgotten_when_they_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from app.batch.attempts import Attempts\n"
        "with Attempts('x').of('piece-1') as attempt: os._exit(attempt)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    root = Path(__file__).parents[2]
    assert [subprocess.run(command, cwd=root).returncode for _ in range(2)] == [1, 2]
    with Attempts("x").of("piece-1") as attempt:
        assert attempt == 3
    assert list(tmp_path.iterdir()) == []


def test_what_is_finished_is_not_asked_again_and_no_cluster_is_joined_for_nothing(
    library, source, tmp_path
):
    spread(library, source, tmp_path / "a.jsonl")
    assert spread(library, source, tmp_path / "a.jsonl", cluster=None)[0] == []


def test_workers_elsewhere_need_a_library_and_a_model_that_they_reach(
    library, source, tmp_path, opened, monkeypatch
):
    elsewhere = replace(HERE, is_here=False)
    with pytest.raises(ClusterFailed, match="library in PostgreSQL, by an address"):
        spread(library, source, tmp_path / "a.jsonl", elsewhere)
    for host in ("localhost", "db-host"):
        there = make_url(f"postgresql://{host}/books")
        monkeypatch.setattr(library, "place", replace(library.place, url=there))
        said = "lies on this machine" if host == "localhost" else "GISTREE_MODEL=http://HOST"
        with pytest.raises(ClusterFailed, match=said):
            spread(library, source, tmp_path / "a.jsonl", elsewhere)
    with pytest.raises(ClusterFailed, match="name them in the settings"):
        spread(opened("Hm."), source, tmp_path / "b.jsonl")


def test_a_worker_that_cannot_go_on_says_where_and_why(library, source, tmp_path):
    class Broken(FakeCluster):
        __slots__ = ()

        def answers(self, pieces, errand, *, workers, cpus):
            broken = replace(errand, library="postgresql://me:secret@127.0.0.1:9/books")
            yield from FakeCluster.answers(self, pieces, broken, workers=1, cpus=1)

    pytest.importorskip("psycopg", reason="needs the extra postgres")
    cluster = Broken(cpus=2, cpus_of_least=2, is_here=True, through_client=False)
    with pytest.raises(ClusterFailed, match=r"a worker on .* cannot go on: .*failed") as error:
        spread(library, source, tmp_path / "a.jsonl", cluster)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "wanted",
    [
        "smollm2-135m-instruct",
        "http://gpu:8000",
        "http://gpu:8000#qwen",
        "langchain:openai:gpt-x",
        "/models/mine.gguf",
    ],
)
def test_a_worker_takes_the_same_model(wanted):
    settings = Settings(models=model_cache(), model=wanted)
    with contextlib.suppress(ModelNotFound):
        chosen = choose_model(settings)
        assert choose_model(Settings(models=settings.models, model=named(chosen))) == chosen


def test_without_ray_it_says_what_to_install(library, source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        Batch(library, source, tmp_path / "a.jsonl", on="local") as batch,
        pytest.raises(MissingExtra, match=r"gistree\[ray\]"),
    ):
        list(batch.run())
