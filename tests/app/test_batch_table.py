"""Tables out of documents: a schema in, a row a document out."""

import csv
import json

import pytest

from app.batch.batch import Batch
from app.batch.errors import BadQuestions, BatchChanged
from memory.errors import StorageFull
from serving.model import Message

SCHEMA = {
    "type": "object",
    "properties": {
        "depth_feet": {"type": "integer", "description": "How many feet deep was the well?"},
        "miller": {"type": "string", "description": "Who was the miller?"},
        "ship": {"type": "string", "description": "Which ship struck the reef?"},
    },
}
SAID = (  # the question, who has the answer, the answer, its value
    ("How many feet deep", "Ansty", "The well was forty feet deep.", 40),
    ("Who was the miller", "Tobias", "The miller was Tobias.", "Tobias"),
    ("Which ship struck", "Petrel", "The schooner Petrel struck the reef.", "Petrel"),
)


def say(messages: list[Message]) -> str:
    """What an obliging model says: the truth of the document that it is shown."""
    prompt = "\n".join(message.content for message in messages)
    _, mark, answer, value = next(said for said in SAID if said[0] in prompt)
    if '{"value"' in prompt:
        return json.dumps({"value": value})
    return answer if mark in prompt else "NOT FOUND"


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    return path


@pytest.fixture
def library(opened, lamp, well):
    library = opened(*[say] * 200)
    library.add(lamp)
    library.add(well)
    return library


def run(library, schema, out, **options):
    with Batch(library, schema, out, fields=True, **options) as batch:
        return list(batch.run()), batch


def rows(out):
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_a_row_a_document_with_a_quote_for_each_value_and_null_for_what_is_not_there(
    library, schema, tmp_path
):
    out = tmp_path / "table.jsonl"
    _, batch = run(library, schema, out)
    lamp, well = rows(out)
    assert [row["title"] for row in (lamp, well)] == ["The Lamp", "well"]
    assert lamp["values"] == {"depth_feet": None, "miller": None, "ship": "Petrel"}
    assert "The schooner Petrel struck the reef" in lamp["citations"]["ship"]["quote"]
    assert lamp["citations"]["miller"] is None
    assert lamp["status"] == "ok"
    assert well["values"]["miller"] == "Tobias"
    assert well["usage"]["calls"] > 3
    assert (batch.total, batch.finished) == (6, 6)


def test_what_does_not_stand_is_null_with_the_reason(library, schema, tmp_path):
    out = tmp_path / "table.jsonl"
    run(library, schema, out)
    well = rows(out)[1]
    assert well["values"]["depth_feet"] is None  # the well says "forty", the model 40
    assert "does not stand" in well["errors"]["depth_feet"]
    assert well["status"] == "error"


def test_a_csv_for_people(library, schema, tmp_path):
    out = tmp_path / "table.csv"
    run(library, schema, out)
    with out.open(encoding="utf-8-sig", newline="") as file:
        lamp, well = list(csv.DictReader(file))
    assert lamp["ship"] == "Petrel"
    assert "struck the reef" in lamp["ship:quote"]
    assert lamp["ship:place"] == "Chapter 2"
    assert well["miller"] == "Tobias"
    assert well["ship"] == well["ship:quote"] == ""
    assert "depth_feet" in well["error"]


def test_an_end_in_the_middle_loses_nothing_and_repeats_nothing(
    library, schema, tmp_path, monkeypatch
):
    out, calls = tmp_path / "table.jsonl", library.model.seen
    with Batch(library, schema, out, fields=True, most_at_once=1) as batch:
        events = batch.run()
        next(events)
        next(events)
        events.close()
        kept = batch.finished
    assert 2 <= kept < 6
    assert {row["status"] for row in rows(out)} <= {"ok", "unfinished"}
    before = len(calls)
    events, _ = run(library, schema, out)
    assert len(events) == 6 - kept
    assert len(calls) - before < 6 * 3
    assert len(rows(out)) == 2
    before = len(calls)
    run(library, schema, out)
    assert len(calls) == before


def test_failed_cells_are_asked_again(library, schema, tmp_path):
    out = tmp_path / "table.jsonl"
    run(library, schema, out)
    events, _ = run(library, schema, out, retry_failed=True)
    assert [event.row.field.name for event in events] == ["depth_feet"]


def test_another_schema_or_another_document_is_another_table(library, schema, tmp_path):
    out = tmp_path / "table.jsonl"
    run(library, schema, out)
    schema.write_text(json.dumps({"properties": {"miller": SCHEMA["properties"]["miller"]}}))
    with pytest.raises(BatchChanged, match="--redo"):
        run(library, schema, out)
    run(library, schema, out, redo=True)
    assert list(rows(out)[0]["values"]) == ["miller"]
    library.add(b"A mill. The miller was Tobias, too.", name="mill.txt")
    with pytest.raises(BatchChanged, match="documents"):
        run(library, schema, out)


def test_the_first_documents_and_an_estimate(library, schema, tmp_path):
    out = tmp_path / "table.jsonl"
    with Batch(library, schema, out, fields=True, limit=1) as batch:
        assert batch.total == 3
        assert batch.estimate().calls == 9  # an answer, whether it stands, and its value
        list(batch.run())
    assert [row["title"] for row in rows(out)] == ["The Lamp"]


@pytest.mark.parametrize(
    "data", [b"{", b'{"properties": {}}', b'{"properties": {"a": {}}}', b"[" * 100_000]
)
def test_a_schema_that_cannot_be_used_makes_no_output(library, tmp_path, data):
    path = tmp_path / "schema.json"
    path.write_bytes(data)
    with pytest.raises(BadQuestions, match=r"schema\.json"):
        run(library, path, tmp_path / "table.jsonl")
    assert not (tmp_path / "table.jsonl").exists()


def test_a_full_disk_keeps_what_was_finished(library, schema, tmp_path, monkeypatch):
    out = tmp_path / "table.jsonl"
    with Batch(library, schema, out, fields=True, most_at_once=1) as batch:
        events = batch.run()
        next(events)
        add = batch._journal.add
        monkeypatch.setattr(
            batch._journal, "add", lambda row: (_ for _ in ()).throw(StorageFull("no space"))
        )
        with pytest.raises(StorageFull):
            list(events)
        monkeypatch.setattr(batch._journal, "add", add)
    events, batch = run(library, schema, out)
    assert batch.finished == 6
