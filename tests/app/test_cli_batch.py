"""``gistree batch`` as a person runs it."""

import csv
import json

import pytest


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "q.csv"
    file.write_text(
        "id,question,document\na,Which ship struck the reef?,lamp.txt\nb,Which ship?,none.txt\n",
        encoding="utf-8",
    )
    return file


def test_a_dry_run_says_what_it_takes_and_asks_nothing(filled, source, tmp_path):
    done = filled("batch", source, "--out", tmp_path / "a.csv", "--dry-run")
    assert done.code == 0, done.err
    assert "2 rows, 4 calls of the model" in " ".join(done.out.split())
    assert not (tmp_path / "a.csv").exists()


def test_a_run_answers_reports_and_is_not_done_twice(filled, source, tmp_path):
    out, report = tmp_path / "a.csv", tmp_path / "run.json"
    command = ("batch", source, "--out", out, "--in-order", "--report", report)
    done = filled(*command)
    assert done.code == 3
    assert "row b: the library holds no document 'none.txt'" in " ".join(done.err.split())
    assert "1 row failed" in done.err
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok", "error"]
    assert rows[0]["answer"] == "The schooner Petrel struck the reef."
    assert "Petrel" in json.loads(rows[0]["citations"])[0]["quote"]
    assert json.loads(report.read_text())["answered"] == 1
    again = filled(*command)
    assert again.code == 3
    assert "2 of 2 rows are answered already" in again.err
    kept = out.read_bytes()
    assert filled(*command, "--redo", "--dry-run").code == 0
    assert filled(*command, "--dry-run").out.startswith("0 rows")
    assert out.read_bytes() == kept
    done = filled("batch", source, "--out", out, "--in-order", "--budget", "300")
    assert done.code == 1
    assert "made with other settings: budget_tokens was" in " ".join(done.err.split())


def test_a_table_of_one_question_for_each_document(filled, tmp_path):
    source, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    source.write_text('{"question": "Which ship struck the reef?"}\n', encoding="utf-8")
    done = filled("batch", source, "--out", out, "--each-document")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: row["row"])  # a server is asked several at a time
    assert [row["found"] for row in rows] == [True, False]


def test_what_cannot_be_written_or_read_is_one_line(filled, source, tmp_path):
    done = filled("batch", tmp_path / "none.csv", "--out", tmp_path / "a.csv")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "there is no file" in done.err
    done = filled("batch", source, "--out", tmp_path / "a.csv", "--report", tmp_path / "r.pdf")
    assert done.code == 1
    assert "none of .html, .json" in done.err
