"""A line of JSON for each event."""

import json
import logging
import sys

import pytest
from door import Door, model_cache

from app.logs import AsJson, LogNotWritable, set_up


def lines(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_a_record_is_one_line_with_its_extras_and_its_traceback():
    try:
        raise ValueError("no\nsuch thing")
    except ValueError:
        record = logging.LogRecord("app.x", 40, "", 1, "row %d", (7,), sys.exc_info())
    record.seconds = 1.5
    said = AsJson().format(record)
    assert "\n" not in said
    line = json.loads(said)
    assert (line["level"], line["from"], line["event"]) == ("error", "app.x", "row 7")
    assert line["seconds"] == 1.5
    assert "no\nsuch thing" in line["traceback"]


def test_what_is_added_and_what_is_not_is_logged_without_a_word_of_it(tmp_path, lamp):
    log = tmp_path / "log.jsonl"
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7 nothing")
    env = {"GISTREE_LOG": str(log), "GISTREE_MODEL": "http://127.0.0.1:9"}
    door = Door(tmp_path / "home", model_cache(), env)
    (tmp_path / "home").mkdir()
    said = door("add", lamp, tmp_path / "bad.pdf")
    assert said.code == 3
    events = {line["event"]: line for line in lines(log)}
    assert events["added"]["seconds"] > 0
    assert events["added"]["chunks"] >= 1
    assert events["not added"]["error"]
    assert "Petrel" not in log.read_text("utf-8")
    assert "INFO" not in said.err  # a person sees warnings only


def test_answers_are_logged_with_what_they_cost(opened, lamp, caplog):
    library = opened("The Petrel sank.")
    library.add(lamp)
    with caplog.at_level(logging.INFO, logger="app.library"):
        answer = library.ask("What sank?", reader="oprag")
    (record,) = [r for r in caplog.records if r.message == "answered"]
    line = json.loads(AsJson().format(record))
    assert line["found"] is answer.found
    assert line["prompt_tokens"] == answer.usage.prompt_tokens
    assert "Petrel" not in json.dumps(line)


def test_a_log_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(LogNotWritable, match="cannot be written"):
        set_up(file=tmp_path)
