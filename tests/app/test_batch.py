import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.batch.batch import Batch
from app.batch.errors import BadQuestions, BatchChanged, BatchError, OutputNotWritable
from app.batch.journal import Journal
from app.batch.plan import about, planned
from app.batch.questions import Row, questions
from app.batch.run import RowDone, Waiting
from app.batch.tally import Tally
from memory.errors import StorageFull
from serving.errors import ModelUnavailable

WELL = "The well was forty feet deep."


def ask_file(tmp_path, *rows, name="questions.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answers(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def three(tmp_path):
    return ask_file(tmp_path, *({"id": f"q{n}", "question": "How deep was it?"} for n in range(3)))


@pytest.fixture
def asked(opened, well):
    """A library with a well, whose model says the same for ever."""

    def make(*replies):
        library = opened(*(replies or [WELL] * 60))
        library.add(well)
        return library

    return make


def test_each_question_gets_one_answer_with_its_citations(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    with Batch(asked(), three, out) as batch:
        events = list(batch.run())
    assert [event.row.id for event in events] == ["q0", "q1", "q2"]
    rows = answers(out)
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    for row in rows:
        assert row["status"] == "ok"
        assert row["found"]
        assert "forty feet" in row["citations"][0]["quote"]
        assert row["usage"]["calls"] == 2


def test_the_same_batch_again_asks_nothing(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out) as batch:
        list(batch.run())
    before, calls = out.read_bytes(), len(library.model.seen)
    with Batch(library, three, out) as batch:
        assert batch.finished == batch.total == 3
        assert list(batch.run()) == []
    assert out.read_bytes() == before
    assert len(library.model.seen) == calls


def test_a_batch_that_was_stopped_goes_on(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out, most_at_once=1) as batch:
        run = batch.run()
        next(run)
        run.close()
        done = batch.finished
    assert 1 <= done < 3
    with Batch(library, three, out) as batch:
        list(batch.run())
    assert sorted(row["id"] for row in answers(out)) == ["q0", "q1", "q2"]


def test_a_torn_last_line_is_cut_off_and_its_row_asked_again(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out) as batch:
        list(batch.run())
    whole = out.read_bytes()
    out.write_bytes(whole[:-20])
    with Batch(library, three, out) as batch:
        assert batch.finished == 2
        list(batch.run())
    assert sorted(row["id"] for row in answers(out)) == ["q0", "q1", "q2"]


def test_a_row_that_fails_does_not_stop_the_others_and_can_be_asked_again(asked, tmp_path):
    source = ask_file(
        tmp_path,
        {"question": "How deep was it?"},
        {"question": "How deep?", "document": "gone.txt"},
        {"question": "How deep is it?", "documents": ["well.txt"]},
    )
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, source, out) as batch:
        list(batch.run())
        assert batch.failed == 1
    bad = next(row for row in answers(out) if row["status"] == "error")
    assert bad["id"] == "2"
    assert "gone.txt" in bad["error"]
    gone = tmp_path / "gone.txt"
    gone.write_text("It was forty feet deep, the well of Ansty.", encoding="utf-8")
    library.add(gone)
    with Batch(library, source, out, retry_failed=True) as batch:
        assert [event.row.id for event in batch.run()] == ["2"]
    assert sorted(row["row"] for row in answers(out)) == [0, 1, 2]
    assert all(row["status"] == "ok" for row in answers(out))


def test_a_row_about_a_document_that_is_gone_is_not_answered_from_one_named_like_it(
    asked, tmp_path
):
    library, out = asked(), tmp_path / "answers.jsonl"
    source = ask_file(tmp_path, {"question": "How deep?", "document": "wel"})
    assert library.show("wel").name == "well.txt"  # which is enough where a person looks on
    with Batch(library, source, out) as batch:
        list(batch.run())
        assert batch.failed == 1
    assert "whole name" in answers(out)[0]["error"]


def test_other_settings_say_what_changed_and_redo_begins_anew(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out, budget_tokens=300) as batch:
        list(batch.run())
    with pytest.raises(BatchChanged, match=r"3 rows .* budget_tokens was 300 and is 400"):
        Batch(library, three, out, budget_tokens=400)
    with Batch(library, three, out, budget_tokens=400, redo=True) as batch:
        assert len(list(batch.run())) == 3
    assert len(answers(out)) == 3


def test_rows_of_one_document_are_asked_one_after_the_other():
    rows = [Row(n, str(n), "?", (("a", "b", "c")[n % 3],)) for n in range(6)]
    assert [r.number for r in planned(rows, lambda r: r.documents)] == [0, 3, 1, 4, 2, 5]
    assert [r.number for r in planned(rows, lambda r: r.documents, window=3)] == [0, 1, 2, 3, 4, 5]


def test_the_order_in_which_a_row_names_documents_makes_no_other_group():
    rows = [
        Row(n, str(n), "?", documents)
        for n, documents in enumerate([("a", "b"), ("c",), ("b", "a"), ("b", "a", "b"), ("a",)])
    ]
    assert [row.number for row in planned(rows, about)] == [0, 2, 3, 1, 4]


def test_no_more_rows_are_read_than_a_window_holds():
    read = []
    rows = (read.append(n) or Row(n, str(n), "?") for n in range(100))
    order = planned(rows, about, window=10)
    next(order)
    assert len(read) == 10


def test_rows_about_the_same_documents_share_the_beginning_of_their_prompts(asked, lamp, tmp_path):
    library = asked(*["The well was forty feet deep."] * 20)
    library.add(lamp)
    source = ask_file(
        tmp_path,
        {"question": "How deep was it?", "documents": ["well.txt", "lamp.txt"]},
        {"question": "How deep was the well?", "documents": ["lamp.txt", "well.txt"]},
    )
    with Batch(library, source, tmp_path / "a.jsonl", reader="full", most_at_once=1) as batch:
        list(batch.run())
    first, second = (
        messages[-1].content
        for messages in library.model.seen
        if "How deep" in messages[-1].content and "stated" not in messages[-1].content.lower()
    )
    same = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert "forty feet" in first[:same]
    assert "Petrel" in first[:same]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_answers_in_the_order_of_the_questions_in_every_format(asked, well, tmp_path, suffix):
    library = asked()
    rows = [{"question": "How deep was it?", "document": d} for d in ("well", "x", "well", "x")]
    source = ask_file(tmp_path, *rows)
    out = tmp_path / f"answers{suffix}"
    with Batch(library, source, out, in_order=True) as batch:
        list(batch.run())
    if suffix == ".jsonl":
        ids = [row["id"] for row in answers(out)]
    elif suffix == ".csv":
        with out.open(encoding="utf-8-sig", newline="") as file:
            ids = [row["id"] for row in csv.DictReader(file)]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        ids = parquet.read_table(out)["id"].to_pylist()
    assert ids == ["1", "2", "3", "4"]


def test_questions_as_csv_and_parquet(tmp_path):
    table = tmp_path / "q.csv"
    table.write_bytes("\ufeffid,question,documents,budget_tokens\nä,Wo?,a; b,300\n".encode())
    (row,) = questions(table)
    assert row == Row(0, "ä", "Wo?", ("a", "b"), "", 300)
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "q.parquet"
    parquet.write_table(pyarrow.table({"question": ["Wo?"], "documents": [["a"]]}), file)
    (row,) = questions(file)
    assert row.documents == ("a",)


def test_questions_in_a_spreadsheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for cells in (
        (),
        ("id", "question", "documents", "budget_tokens", "mine"),
        (7, "Wo?", "a; b", 300, None),
        (None, None, None, None, None),
        (8.5, "Wer?", None, None, "x"),
    ):
        book.active.append(cells)
    file = tmp_path / "q.xlsx"
    book.save(file)
    assert list(questions(file)) == [
        Row(0, "7", "Wo?", ("a", "b"), "", 300),
        Row(1, "8.5", "Wer?"),
    ]
    book.active.delete_rows(2)  # the names of the columns
    book.save(file)
    with pytest.raises(BadQuestions, match='row 4 has no column "question"'):
        list(questions(file))


def test_a_cell_is_no_formula(asked, tmp_path):
    source = ask_file(tmp_path, {"id": "=cmd()", "question": "How deep was it?"})
    out = tmp_path / "answers.csv"
    with Batch(asked(), source, out) as batch:
        list(batch.run())
    with out.open(encoding="utf-8-sig", newline="") as file:
        assert next(csv.DictReader(file))["id"] == "'=cmd()"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("q.csv", b"text\nWho?\n", 'no column "question"'),
        ("q.jsonl", b'{"question": "Who?"}\n{"question": "W\xff"}\n', "not UTF-8"),
        ("q.jsonl", b'{"question": "Who?"}\n{"question": \n', "line 2 is not JSON"),
        ("q.jsonl", b'["Who?"]\n', "no JSON object"),
        ("q.jsonl", b'{"question": "  "}\n', "question is empty"),
        (
            "q.jsonl",
            b'{"id": 1, "question": "A?"}\n{"id": "1", "question": "B?"}\n',
            "rows 1 and 2",
        ),
        ("q.jsonl", b'{"question": "A?", "budget_tokens": "many"}\n', "budget_tokens"),
        ("q.jsonl", b"\n", "no questions"),
        ("q.ods", b"PK", "none of .jsonl, .csv, .parquet, .xlsx"),
        ("q.xlsx", b"PK", "no XLSX file"),
        ("q.parquet", b"PK", "Parquet"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_place(asked, tmp_path, name, data, said):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BadQuestions, match=said.replace("(", r"\(")):
        Batch(asked(), path, tmp_path / "answers.jsonl")
    assert not (tmp_path / "answers.jsonl").exists()


def test_an_output_that_cannot_be_written_is_known_at_once(asked, three, tmp_path):
    library = asked()
    with pytest.raises(OutputNotWritable, match="no folder"):
        Batch(library, three, tmp_path / "none" / "a.jsonl")
    with pytest.raises(OutputNotWritable, match=r"\.docx"):
        Batch(library, three, tmp_path / "a.docx")
    other = tmp_path / "notes.jsonl"
    other.write_text('{"my": "notes"}\n', encoding="utf-8")
    with pytest.raises(BatchError, match="no answer of a batch"):
        Batch(library, three, other)
    with pytest.raises(BatchError, match="no answer of a batch"):
        Batch(library, three, other, redo=True)
    assert other.read_text(encoding="utf-8") == '{"my": "notes"}\n'


def test_two_batches_do_not_write_one_file(asked, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out), pytest.raises(OutputNotWritable, match="another process"):
        Batch(library, three, out)


def test_a_server_that_comes_back_is_waited_for(asked, three, tmp_path):
    from app.batch.run import Runner

    library = asked(ModelUnavailable("no server at 8000"), *[WELL] * 9)
    with Journal(tmp_path / "a.jsonl") as journal:
        runner = Runner(library, journal, waits_s=(0.01,))
        events = list(runner.run(questions(three)))
    assert [type(event) for event in events].count(Waiting) == 1
    assert [event.status for event in events if isinstance(event, RowDone)] == ["ok"] * 3


def test_a_server_that_stays_away_ends_the_run_and_no_row_is_lost(asked, three, tmp_path):
    from app.batch.run import Runner

    library = asked(WELL, *[ModelUnavailable("no server at 8000")] * 9)
    with Journal(tmp_path / "a.jsonl") as journal:
        runner = Runner(library, journal, waits_s=(0.01,))
        with pytest.raises(ModelUnavailable):
            list(runner.run(questions(three)))
        assert len(journal.status) == journal.status.count("ok") == 1


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_nothing_finished_is_lost_or_repeated_however_often_it_is_killed(tmp_path, well, suffix):
    """A process is killed again and again until the batch is done, and once at its last row."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    source = ask_file(
        tmp_path, *({"id": f"q{n}", "question": f"How deep was it, {n}?"} for n in range(24))
    )
    out = tmp_path / f"answers{suffix}"
    rows = out if suffix == ".jsonl" else out.with_name(f"{out.name}.rows")
    script = Path(__file__).parent / "batch_process.py"
    command = [sys.executable, str(script), str(tmp_path / "library"), str(well), source, out]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    kept: list[str] = []
    at_the_end = False
    for kill in range(40):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for asked, _ in enumerate(process.stdout):
            last = len(kept) + asked + 1 == 24 and not at_the_end
            if last or asked > 1 + kill % 3:
                at_the_end = at_the_end or last
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        process.stdout.close()
        now = [
            json.loads(line)["id"]
            for line in rows.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]
        assert now[: len(kept)] == kept
        kept = now
        if process.returncode == 0:
            break
        time.sleep(0.01)
    assert kill > 2
    assert at_the_end
    assert sorted(kept) == sorted(f"q{n}" for n in range(24))
    undisturbed = tmp_path / f"undisturbed{suffix}"
    subprocess.run([*command[:-1], undisturbed], env=environment, check=True, capture_output=True)
    assert answers_in(out) == answers_in(undisturbed)


def answers_in(file):
    """(id, answer, status) of each row of an output, in order of ids."""
    if file.suffix == ".csv":
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.DictReader(lines))
    elif file.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(file).to_pylist()
    else:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return sorted((row["id"], row["answer"], row["status"]) for row in rows)


@pytest.fixture
def two_wells(asked, well):
    """A library of two documents."""
    library = asked()
    other = well.with_name("spring.txt")
    other.write_text("The spring of Ansty was forty feet deep.", encoding="utf-8")
    library.add(other)
    return library


def test_every_question_for_every_document_makes_a_table(two_wells, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    with Batch(two_wells, three, out, each_document=True) as batch:
        assert batch.total == 6
        list(batch.run())
    rows = answers(out)
    wells, springs = (entry.id for entry in two_wells.list())
    assert {row["id"] for row in rows} == {
        f"q{n}/{key[:12]}" for n in range(3) for key in (wells, springs)
    }
    for row in rows:
        cited = {citation["document"][:12] for citation in row["citations"]}
        assert cited == {row["id"].partition("/")[2]}
    # rows of one document follow each other, so that they share a prompt's beginning
    assert [row["id"].partition("/")[2] for row in rows] == [wells[:12]] * 3 + [springs[:12]] * 3


def test_a_document_more_changes_a_table_and_the_batch_says_so(two_wells, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    with Batch(two_wells, three, out, each_document=True) as batch:
        list(batch.run())
    third = tmp_path / "pond.txt"
    third.write_text("The pond was shallow.", encoding="utf-8")
    two_wells.add(third)
    with pytest.raises(BatchChanged, match="documents was"):
        Batch(two_wells, three, out, each_document=True)


def test_a_document_that_goes_while_a_table_is_made_fails_its_rows_only(two_wells, three, tmp_path):
    out = tmp_path / "answers.jsonl"
    with Batch(two_wells, three, out, each_document=True, most_at_once=1) as batch:
        run = batch.run()
        next(run)
        two_wells.delete("spring.txt")
        list(run)
        assert batch.failed == 3
    bad = [row for row in answers(out) if row["status"] == "error"]
    assert all("no document" in row["error"] for row in bad)


def test_the_library_runs_a_batch_and_says_what_it_came_to(asked, three, tmp_path):
    seen = []
    totals = asked().batch(three, tmp_path / "a.csv", in_order=True, on_event=seen.append)
    assert (totals.rows, totals.finished, totals.failed) == (3, 3, 0)
    assert totals.usage.calls == 6
    assert len(seen) == 3


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_was_finished(
    asked, three, tmp_path, monkeypatch
):
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    out = tmp_path / "answers.jsonl"
    library = asked()
    with Batch(library, three, out, most_at_once=1) as batch:
        monkeypatch.setattr("app.batch.journal.os.fsync", full)
        with pytest.raises(StorageFull, match="run the same command again"):
            list(batch.run())
        monkeypatch.undo()
    assert len(answers(out)) == 1
    with Batch(library, three, out) as batch:
        list(batch.run())
    assert sorted(row["id"] for row in answers(out)) == ["q0", "q1", "q2"]


def test_ten_million_rows_are_counted_in_ten_megabytes_or_so():
    tally = Tally()
    tally.put(9_999_999, "ok")
    tally.put(3, "error")
    assert (len(tally), tally.count("error"), tally[9_999_999]) == (2, 1, "ok")
    assert 4 not in tally
    assert len(tally._codes) <= 20_000_000
    tally.put(3, "ok")
    assert tally.count("error") == 0
