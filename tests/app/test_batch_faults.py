"""What befalls a batch from outside: full disks, damaged files beside it, faults of ours."""

import importlib.util
import json
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.batch.batch import Batch
from app.batch.errors import BadQuestions, BatchChanged, BatchError, OutputNotWritable
from app.batch.questions import questions, survey
from app.batch.settings import beside
from memory.errors import StorageFull
from serving.errors import MissingExtra, ModelError

WELL = "The well was forty feet deep."


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "questions.jsonl"
    rows = ({"id": f"q{n}", "question": "How deep was it?"} for n in range(12))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def asked(opened, well):
    """A library with a well, whose model says what it is told to, and then the same for ever."""

    def make(*replies):
        library = opened(*replies, *[WELL] * 60)
        library.add(well)
        return library

    return make


@contextmanager
def files_of_at_most(size_bytes):
    """A disk that takes no more of any file than so much: half a line, as a full one does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def kept(batch):
    return [json.loads(line)["id"] for line in batch._journal.path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_disk_that_stays_full_until_the_end_is_said_and_the_same_batch_goes_on(
    asked, source, tmp_path, name
):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    library, out = asked(), tmp_path / name

    def ask():
        with Batch(library, source, out, most_at_once=1) as batch:
            list(batch.run())

    # A small Parquet file is bigger than those few answers: it cannot be made, either.
    with (
        files_of_at_most(4_000),
        pytest.raises((StorageFull, OutputNotWritable), match=r"free some|answers are kept in"),
    ):
        ask()
    with Batch(library, source, out) as batch:  # the first has let go of the file
        done = batch.finished
        assert 1 < done < 12
        assert len(list(batch.run())) == 12 - done
        assert sorted(kept(batch)) == sorted(f"q{n}" for n in range(12))
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_when_the_output_is_made_leaves_no_half_file(
    asked, source, tmp_path, monkeypatch
):
    pytest.importorskip("pyarrow")
    out = tmp_path / "a.parquet"

    def full(path, rows, columns):
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    library = asked()
    with monkeypatch.context() as patch, Batch(library, source, out) as batch:
        patch.setattr("app.batch.output.write_rows", full)
        with pytest.raises(OutputNotWritable, match=r"the answers are kept in .*a\.parquet\.rows"):
            list(batch.run())
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))
    with Batch(library, source, out) as batch:
        assert list(batch.run()) == []
    assert out.exists()


def test_a_fault_of_ours_in_one_row_stops_no_other(asked, source, tmp_path, caplog):
    library = asked(RuntimeError("the model's library has a fault"))
    with Batch(library, source, tmp_path / "a.jsonl", most_at_once=1) as batch:
        events = list(batch.run())
    assert [event.status for event in events] == ["error"] + ["ok"] * 11
    assert events[0].error == "RuntimeError: the model's library has a fault"
    assert "Traceback" in caplog.text


def test_failed_rows_stay_where_asking_them_again_is_refused(asked, source, tmp_path):
    out = tmp_path / "a.jsonl"
    library = asked(ModelError("it is out of sorts"))
    with Batch(library, source, out, most_at_once=1) as batch:
        list(batch.run())
    before = out.read_bytes()
    with pytest.raises(BatchChanged, match=r"11 rows .* budget_tokens"):
        Batch(library, source, out, budget_tokens=300, retry_failed=True)
    assert out.read_bytes() == before


def test_where_all_have_failed_they_are_asked_again_with_other_settings(asked, source, tmp_path):
    out = tmp_path / "a.jsonl"
    library = asked(*[ModelError("it is out of sorts")] * 12)
    with Batch(library, source, out, most_at_once=1) as batch:
        list(batch.run())
        assert batch.failed == 12
    with Batch(library, source, out, budget_tokens=300, retry_failed=True) as batch:
        list(batch.run())
        assert batch.failed == 0


def test_redo_throws_nothing_away_that_was_made_with_the_same_settings(asked, source, tmp_path):
    """So the same command with --redo, run again after it was killed, goes on like any other."""
    out = tmp_path / "a.jsonl"
    library = asked()
    with Batch(library, source, out) as batch:
        list(batch.run())
    with Batch(library, source, out, budget_tokens=300, redo=True, most_at_once=1) as batch:
        assert batch.finished == 0
        run = batch.run()
        next(run)
        run.close()
        done = batch.finished
    with Batch(library, source, out, budget_tokens=300, redo=True) as batch:
        assert batch.finished == done >= 1
        assert len(list(batch.run())) == 12 - done


def test_a_dry_run_writes_nothing_and_counts_what_would_be_asked(asked, source, tmp_path):
    out = tmp_path / "a.jsonl"
    library = asked(ModelError("it is out of sorts"))
    before = set(tmp_path.iterdir())
    with Batch(library, source, out, dry_run=True) as batch:
        assert batch.estimate().rows == 12
    assert set(tmp_path.iterdir()) == before
    with Batch(library, source, out, most_at_once=1) as batch:
        list(batch.run())
    files = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for options, rows in (
        ({}, 0),
        ({"retry_failed": True}, 1),
        ({"redo": True}, 0),
        ({"redo": True, "budget_tokens": 300}, 12),
    ):
        with Batch(library, source, out, dry_run=True, **options) as batch:
            assert batch.estimate().rows == rows
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == files


def test_damaged_settings_beside_the_answers_are_named(asked, source, tmp_path):
    out = tmp_path / "a.jsonl"
    library = asked()
    with Batch(library, source, out) as batch:
        list(batch.run())
    beside(out).write_text('{"reader": ')
    with pytest.raises(BatchError, match=r"a\.jsonl\.settings\.json is damaged"):
        Batch(library, source, out)
    beside(out).unlink()
    with Batch(library, source, out) as batch:
        assert list(batch.run()) == []


def test_a_setting_that_an_older_version_did_not_keep_changes_nothing(asked, source, tmp_path):
    out = tmp_path / "a.jsonl"
    library = asked()
    with Batch(library, source, out) as batch:
        list(batch.run())
    known = json.loads(beside(out).read_text())
    del known["reranker"]
    beside(out).write_text(json.dumps(known))
    with Batch(library, source, out) as batch:
        assert list(batch.run()) == []


def test_parquet_that_cannot_be_written_is_known_before_the_run(
    asked, source, tmp_path, monkeypatch
):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else real(name)
    )
    with pytest.raises(MissingExtra, match="parquet"):
        Batch(asked(), source, tmp_path / "a.parquet")
    assert not list(tmp_path.glob("a.parquet*"))


def test_an_output_that_is_a_folder_is_said(asked, source, tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(OutputNotWritable, match="is a folder"):
        Batch(asked(), source, tmp_path / "a.csv")


def test_a_folder_without_permission_is_said(asked, source, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o500)
    if os.access(shut, os.W_OK):
        pytest.skip("this person may write everywhere, as root may")
    with pytest.raises(OutputNotWritable, match="cannot be written"):
        Batch(asked(), source, shut / "a.csv")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("q.jsonl", b'{"question": "A?", "documents": 5}', "line 1: documents is 5"),
        ("q.jsonl", b'{"question": "A?", "budget_tokens": Infinity}', "budget_tokens is inf"),
        ("q.jsonl", b"[" * 200_000, "line 1 is not JSON"),
        ("q.csv", b"question\n" + b"Who?\n" * 5_000 + b"W\xf6?\n", "line 5,002 holds bytes"),
        ("q.csv", "question\nWho?\n".encode("utf-16"), "line 1 holds bytes that are not UTF-8"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_its_line(tmp_path, name, data, said):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BadQuestions, match=said):
        survey(path)


def test_a_spreadsheet_that_parts_columns_by_semicolons_or_tabs_is_read(tmp_path):
    for sign in (";", "\t"):
        path = tmp_path / "q.csv"
        path.write_text(f"id{sign}question\n7{sign}Who, where?\n", encoding="utf-8")
        assert [(row.id, row.question) for row in questions(path)] == [("7", "Who, where?")]


def test_an_id_that_is_no_text_is_kept_as_what_can_be_written(asked, tmp_path):
    path, out = Path(tmp_path / "q.jsonl"), tmp_path / "a.jsonl"
    path.write_text('{"id": "\\ud800", "question": "How deep was it?"}\n')
    with Batch(asked(), path, out) as batch:
        assert [event.status for event in batch.run()] == ["ok"]
    assert json.loads(out.read_text())["id"] == "?"
