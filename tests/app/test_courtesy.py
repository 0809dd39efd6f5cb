"""A person's question goes before a batch's rows, in whatever process each is."""

import json
import os
import subprocess
import sys
import threading

import pytest
from tales import WELL

from app.batch.batch import Batch
from app.batch.plan import about
from app.batch.questions import Row
from app.batch.run import RowDone, Waiting
from app.courtesy import Courtesy

ASKS = """
import sys, time
from pathlib import Path
from app.courtesy import Courtesy
with Courtesy(Path(sys.argv[1])).asking():
    print("asks", flush=True)
    time.sleep(60)
"""


def someone_elsewhere(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", ASKS, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "asks\n"
    return process


def test_questions_of_other_processes_are_seen_until_they_end(tmp_path):
    folder = tmp_path / "asking"
    courtesy = Courtesy(folder)
    assert not courtesy.somebody_asks()
    one, two = someone_elsewhere(folder), someone_elsewhere(folder)
    assert courtesy.somebody_asks()
    one.kill()
    one.communicate()
    assert courtesy.somebody_asks()
    two.kill()
    two.communicate()
    assert not courtesy.somebody_asks()
    assert not list(folder.glob("*.asking")), "what the killed ones left is gone"


def test_a_question_of_this_process_counts_while_it_lasts(tmp_path):
    courtesy = Courtesy(tmp_path)
    with courtesy.asking(), courtesy.asking():
        assert courtesy.somebody_asks()
    assert not courtesy.somebody_asks()


def test_a_question_that_nobody_goes_on_with_holds_nothing_up(tmp_path):
    courtesy = Courtesy(tmp_path)
    with courtesy.asking() as goes_on:
        (mark,) = tmp_path.glob("*.asking")
        os.utime(mark, (0, 0))
        assert not courtesy.somebody_asks()
        goes_on()
        assert courtesy.somebody_asks()


def test_where_nothing_can_be_written_the_question_is_answered_all_the_same(tmp_path):
    (tmp_path / "file").write_text("")
    with Courtesy(tmp_path / "file" / "asking").asking() as goes_on:
        goes_on()


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps({"question": f"How deep, {n}?"}) + "\n" for n in range(6)))
    return file


@pytest.fixture
def library(opened, well, tmp_path, monkeypatch):
    monkeypatch.setenv("GISTREE_MODELS", str(tmp_path / "models"))
    library = opened(*[WELL] * 60)
    library.add(well)
    return library


def test_a_batch_begins_nothing_while_somebody_asks_and_loses_no_row(library, questions, tmp_path):
    done = []
    with Batch(library, questions, tmp_path / "answers.jsonl") as batch:
        asks = library.courtesy.asking()
        asks.__enter__()
        answered = threading.Timer(
            1.5, lambda: (done.append("answer"), asks.__exit__(None, None, None))
        )
        answered.start()
        for event in batch.run():
            done.append(event)
    assert [type(e) for e in done if isinstance(e, RowDone)] == [RowDone] * 6
    assert done.index("answer") < min(n for n, e in enumerate(done) if isinstance(e, RowDone))
    assert any(isinstance(e, Waiting) and "answered" in e.why for e in done)


def test_a_batch_does_not_wait_for_itself(library, questions, tmp_path):
    with Batch(library, questions, tmp_path / "answers.jsonl") as batch:
        assert not [e for e in batch.run() if isinstance(e, Waiting)]


@pytest.mark.parametrize("why", ["told so", "a server that takes many at a time"])
def test_a_batch_need_not_stand_back(library, questions, tmp_path, why):
    if why == "told so":
        library.settings.batches_stand_back = False
    else:
        library.model.num_at_once = 8
    with library.courtesy.asking(), Batch(library, questions, tmp_path / "a.jsonl") as batch:
        assert [type(event) for event in batch.run()] == [RowDone] * 6


def test_rows_about_the_same_documents_stand_together_in_whatever_order_they_name_them():
    one, two = (Row(0, "", "", documents=names) for names in (("a", "b"), ("b", "a")))
    assert about(one) == about(two)
