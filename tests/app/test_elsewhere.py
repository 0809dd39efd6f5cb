"""Documents, questions and answers by URL, on file systems that need no network."""

import json
import sys

import pytest

from app.batch.batch import Batch
from app.batch.errors import BadQuestions, OutputNotWritable
from app.batch.remote import at_hand
from app.elsewhere import NotReached, fetch, is_url, name_of, shown
from app.remote_documents import add_from
from serving.errors import MissingExtra

fsspec = pytest.importorskip("fsspec", reason="needs the extra remote")

SAID = "The schooner was the Petrel."


@pytest.fixture
def there():
    """A file system in memory, empty again afterwards."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def asked(opened, lamp):
    library = opened(*[SAID] * 40)
    library.add(lamp)
    return library


@pytest.fixture
def questions(there):
    rows = ({"id": f"q{n}", "question": "Which ship struck the reef?"} for n in range(3))
    there.pipe("/in/questions.jsonl", "".join(json.dumps(r) + "\n" for r in rows).encode())
    return "memory://in/questions.jsonl"


def ids(data):
    return [json.loads(line)["id"] for line in data.decode().splitlines()]


def test_questions_come_from_and_answers_go_to_where_their_urls_say(asked, there, questions):
    totals = asked.batch(questions, "memory://out/answers.jsonl")
    assert (totals.finished, totals.failed) == (3, 0)
    sent = there.cat("/out/answers.jsonl")
    assert ids(sent) == ["q0", "q1", "q2"]
    calls = len(asked.model.seen)
    there.rm("/out/answers.jsonl")
    asked.batch(questions, "memory://out/answers.jsonl")
    assert there.cat("/out/answers.jsonl") == sent
    assert len(asked.model.seen) == calls


def test_what_is_finished_is_sent_where_a_run_is_ended(asked, there, questions):
    def end(_event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked.batch(questions, "memory://out/answers.csv", on_event=end)
    before = there.cat("/out/answers.csv").decode()
    assert 1 <= before.count("Petrel was") + before.count("was the Petrel") < 3
    assert asked.batch(questions, "memory://out/answers.csv").finished == 3
    assert there.cat("/out/answers.csv").decode().count("was the Petrel") == 3


def test_answers_that_another_machine_has_written_are_not_replaced_unasked(asked, there, questions):
    there.pipe("/out/answers.jsonl", b"mine")
    with pytest.raises(OutputNotWritable, match="not begun on this machine"):
        asked.batch(questions, "memory://out/answers.jsonl")
    assert there.cat("/out/answers.jsonl") == b"mine"
    asked.batch(questions, "memory://out/answers.jsonl", redo=True)
    assert len(ids(there.cat("/out/answers.jsonl"))) == 3


def test_answers_that_cannot_be_sent_are_kept_and_sent_by_the_same_command(
    asked, there, questions, monkeypatch
):
    def full(*_args, **_options):
        raise OSError("the bucket is full")

    with monkeypatch.context() as patch:
        patch.setattr(type(there), "put_file", full)
        with pytest.raises(OutputNotWritable, match=r"bucket is full.*kept in .*answers\.jsonl"):
            asked.batch(questions, "memory://out/answers.jsonl")
    calls = len(asked.model.seen)
    asked.batch(questions, "memory://out/answers.jsonl")
    assert len(asked.model.seen) == calls
    assert len(ids(there.cat("/out/answers.jsonl"))) == 3


def test_a_dry_run_sends_nothing(asked, there, questions):
    keep = asked.place.batches
    with (
        at_hand(questions, "memory://out/a.jsonl", keep=keep, dry_run=True) as (source, out),
        Batch(asked, source, out) as batch,
    ):
        assert batch.estimate().rows == 3
    assert not there.exists("/out/a.jsonl")


def test_a_folder_elsewhere_is_added_file_by_file(opened, there, lamp, well):
    there.pipe("/books/lamp.txt", lamp.read_bytes())
    there.pipe("/books/wells/well.txt", well.read_bytes())
    there.pipe("/books/wells/empty.txt", b"")
    there.pipe("/books/.hidden/x.txt", b"x")
    library = opened()
    added, failed = add_from(library, "memory://books/", tags=["far"])
    assert [entry.name for entry in added] == ["lamp.txt", "well.txt"]
    assert [(f.path, "empty" in str(f.error)) for f in failed] == [
        ("memory://books/wells/empty.txt", True)
    ]
    assert len(library.list(tag="far")) == 2
    assert library.file("well").read_bytes() == well.read_bytes()
    again, _ = add_from(library, "memory://books/lamp.txt")
    assert [entry.id for entry in again] == [added[0].id]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://none.txt", "there is no file memory://none.txt"),
        ("gs://bucket/a.txt", "gcsfs"),
        ("what://a.txt", "what"),
    ],
)
def test_what_cannot_be_had_is_named(tmp_path, there, opened, url, said):
    with pytest.raises(NotReached, match=said):
        fetch(url, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
    _, (failure,) = add_from(opened(), url)
    assert said in str(failure.error)


def test_questions_that_are_not_there_are_named(asked, there):
    with pytest.raises(BadQuestions, match="there is no file memory://in/none"):
        asked.batch("memory://in/none.jsonl", "memory://out/a.jsonl")


def test_without_its_driver_an_address_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match=r"gistree\[remote\]"):
        fetch("s3://bucket/a.txt", tmp_path / "a.txt")
    for name in [n for n in sys.modules if n.split(".")[0] == "fsspec"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"memory:// needs the extra 'remote'"):
        fetch("memory://a.txt", tmp_path / "a.txt")


def test_addresses_and_paths_are_told_apart_and_secrets_not_shown():
    assert is_url("s3://bucket/x.pdf")
    assert not is_url("C:\\x.pdf")
    assert not is_url("notes/http.txt")
    assert shown("https://me:secret@host/a.pdf?sig=abc") == "https://host/a.pdf"
    assert name_of("https://host/a%20b/paper.pdf?sig=abc") == "paper.pdf"


def test_the_command_line_takes_urls(filled, tmp_path):
    source = tmp_path / "q.jsonl"
    source.write_text('{"question": "Which ship struck the reef?"}\n', encoding="utf-8")
    out = tmp_path / "sent" / "answers.jsonl"
    out.parent.mkdir()
    done = filled("batch", source.as_uri(), "--out", out.as_uri())
    assert done.code == 0, done.err
    assert json.loads(out.read_text(encoding="utf-8"))["found"]
    assert [path.name for path in out.parent.iterdir()] == ["answers.jsonl"]
    done = filled("add", (filled.home / "well.txt").as_uri(), (tmp_path / "no.txt").as_uri())
    assert done.code == 3
    assert "well.txt" in done.out
    assert "there is no file" in done.err
