"""Every command, run the way a person runs it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import app

CITATION = {"document", "title", "quote", "start", "end", "page", "label", "section", "position"}
ENTRY = {"id", "name", "title", "media_type", "language", "pages", "pages_read", "paged", "words"}
ENTRY |= {"size_bytes", "added_at", "tags"}


def test_adding_files_and_folders(door, lamp, well, tmp_path):
    folder = tmp_path / "shelf"
    (folder / "deep").mkdir(parents=True)
    shutil.copy(well, folder / "deep" / "well.txt")
    said = door("add", lamp, folder, "--tag", "sea", "--json")
    assert said.code == 0, said.err
    assert [e["name"] for e in said.json["added"]] == ["lamp.txt", "well.txt"]
    assert said.json["failed"] == []
    assert set(said.json["added"][0]) == ENTRY | {"problems"}
    assert said.json["added"][0]["tags"] == ["sea"]
    again = door("add", lamp)
    assert again.code == 0
    assert "lamp.txt" in again.out
    assert "reading" not in again.err, "what is there is not read again"
    assert len(door("list", "--json").json["documents"]) == 2


def test_what_cannot_be_added_does_not_stop_the_rest(door, lamp, tmp_path):
    (tmp_path / "nothing").mkdir()
    (tmp_path / "empty.txt").write_bytes(b"")
    said = door("add", "missing.pdf", tmp_path / "nothing", tmp_path / "empty.txt", lamp)
    assert said.code == 3
    assert "lamp.txt" in said.out
    assert "not added: there is no file missing.pdf" in said.err
    assert "not added: there are no files in" in said.err
    assert "not added: empty.txt is empty" in said.err
    said = door("add", "missing.pdf", "--json")
    assert said.code == 1
    assert said.json == {
        "added": [],
        "failed": [{"path": "missing.pdf", "error": "there is no file missing.pdf"}],
    }


def test_an_answer_on_the_terminal(filled):
    said = filled("ask", "Which ship struck the reef?", "--doc", "lamp.txt")
    assert said.code == 0, said.err
    assert "The schooner Petrel struck the reef." in said.out
    assert "“The schooner Petrel struck the reef and sank.”" in said.out
    assert "oprag, parrot: 90 tokens read, 7 written" in said.out


def test_an_answer_as_one_object(filled):
    said = filled("ask", "Which ship struck the reef?", "--json", "--reader", "full")
    answer = said.json
    assert set(answer) == {
        *("question", "answer", "found", "citations", "nearest", "unsupported"),
        "claims",
        *("reader", "model", "seconds", "usage"),
    }
    assert set(answer["usage"]) == {
        *("prompt_tokens", "cached_tokens", "completion_tokens", "calls"),
    }
    assert answer["found"] is True
    assert answer["reader"] == "full"
    assert answer["model"] == "parrot"
    best = answer["citations"][0]
    assert set(best) == CITATION | {"score"}
    whole = filled("show", best["document"], "--text", "--json").json["text"]
    assert whole[best["start"] : best["end"]] == best["quote"]
    assert answer["usage"] == {
        "prompt_tokens": 90,
        "cached_tokens": 0,
        "completion_tokens": 7,
        "calls": 1,
    }


def test_an_answer_without_support_is_not_found_and_no_failure(filled):
    said = filled("ask", "How deep was it?", "--doc", "well.txt")
    assert said.code == 0
    assert "Not found in this document." in said.out
    assert "The nearest passages:" in said.out


def test_searching(filled):
    said = filled("search", "how deep is the well", "-k", "1")
    assert said.code == 0
    assert "forty feet deep" in said.out
    found = filled("search", "how deep is the well", "--doc", "lamp.txt", "--json").json
    assert found["query"] == "how deep is the well"
    assert found["passages"]
    assert all(set(p) == CITATION | {"score"} for p in found["passages"])
    assert {p["title"] for p in found["passages"]} == {"The Lamp"}


def test_listing_and_showing(filled):
    listed = filled("list", "--json").json["documents"]
    assert sorted(e["name"] for e in listed) == ["lamp.txt", "well.txt"]  # added at once
    assert all(set(e) == ENTRY for e in listed)
    assert "The Lamp" in filled("list").out
    shown = filled("show", "lamp.txt", "--json").json
    assert set(shown) == ENTRY | {"problems", "sections"}
    assert {"title": "Chapter 2", "level": 1}.items() <= shown["sections"][-1].items()
    assert "Chapter 2" in filled("show", "lamp").out
    text = filled("show", "lamp.txt", "--text").out
    assert text.startswith("The Lamp\n")
    assert text.rstrip().endswith("was not among them.")


@pytest.mark.slow
def test_renaming_tagging_and_deleting(door, lamp, well):
    assert door("list").out == "The library is empty. Add a document: gistree add FILE\n"
    door("add", lamp, well)
    assert "A Light at Sea" in door("rename", "lamp.txt", "A Light at Sea").out
    assert "tags: old, sea" in door("tag", "light at", "sea", "old").out
    assert [e["tags"] for e in door("list", "--tag", "sea", "--json").json["documents"]] == [
        ["old", "sea"]
    ]
    assert "tags:" not in door("tag", "light at").out
    kept = door("delete", "light at", said="n\n")
    assert kept.code == 0
    assert "Delete A Light at Sea?" in kept.out
    assert door("delete", "light at").code == 1, "nobody is there to confirm"
    assert door("delete", "well.txt", "missing", "--yes").code == 1, "all names or none"
    assert door("delete", "wel", "--yes").code == 1, "a part of a name, and nobody looks on"
    assert len(door("list", "--json").json["documents"]) == 2
    assert "deleted A Light at Sea" in door("delete", "light at", said="y\n").out
    assert door("delete", "well.txt", "--yes").code == 0
    assert door("list", "--json").json == {"documents": []}
    assert not [p for p in (door.library / "files").rglob("*") if p.is_file()]


def test_models_are_listed_chosen_and_removed(door, tmp_path, model_server):
    models = tmp_path / "models"
    models.mkdir()
    door.env = {"GISTREE_MODELS": str(models)}
    listed = door("models", "list", "--json").json["models"]
    assert {"name", "kind", "licence", "size_bytes", "window", "installed"} <= set(listed[0])
    assert not any(m["installed"] for m in listed)
    assert "qwen2.5-coder-1.5b-instruct" in door("models", "list").out
    for command in (("fetch", "gpt-9"), ("use", "gpt-9")):
        said = door("models", *command)
        assert said.code == 1
        assert "no model is named 'gpt-9'; known: gpt-oss-20b, " in said.err
    said = door("models", "use", "smollm2-135m-instruct")
    assert said.code == 1
    assert "gistree models fetch smollm2-135m-instruct" in said.err
    assert not door.settings.exists(), "a choice that cannot be used is not kept"
    assert door("models", "use", f"{model_server.url}#parrot").code == 0
    assert door.settings.read_text() == f'model = "{model_server.url}#parrot"\n'
    (models / "smollm2-135m-instruct-q4_1.gguf").write_bytes(bytes(2_000_000))
    assert "2 MB freed" in door("models", "remove", "smollm2-135m-instruct").out
    assert not list(models.glob("*.gguf"))


def test_the_doctor_says_what_is_here(filled):
    said = filled("doctor", "--no-measure")
    assert said.code == 0, said.err
    assert "you chose this server" in said.out
    findings = filled("doctor", "--no-measure", "--json").json["findings"]
    assert {"what", "value", "advice"} == set(findings[0])
    assert {"processor", "memory", "GPU", "embedder", "language model"} <= {
        f["what"] for f in findings
    }


def test_misuse_is_2(door):
    for args in (("frob",), ("ask", "x", "--budget", "0"), ("list", "--colour")):
        said = door(*args)
        assert said.code == 2
        assert "Usage:" in said.err


def test_every_command_helps_and_loads_nothing_heavy(door):
    code = (
        "import sys\nsys.argv = ['gistree', '--help']\nimport app.cli\n"
        "try:\n    app.cli.main()\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=door.environment()
    )
    for command in app.registered_commands:
        assert (command.name or command.callback.__name__) in done.stdout
    loaded = set(done.stderr.split())
    assert not {"sqlalchemy", "numpy", "pydantic", "httpx", "onnxruntime", "faiss"} & loaded


def test_opening_a_library_that_is_up_to_date_does_not_load_alembic(filled):
    code = "import sys, app.library\napp.library.open_library().close()\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=filled.environment()
    )
    loaded = set(done.stdout.split())
    assert "sqlalchemy" in loaded
    assert not {"alembic", "onnxruntime", "faiss", "tantivy", "httpx"} & loaded


def test_ctrl_c_is_clean_and_the_next_run_finishes(door, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text("\n\n".join(f"Lamp number {i} burned all night." * 9 for i in range(250)))
    process = door.start("add", long)
    said = b""
    while b"indexing" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted; what was finished is kept" in err
    assert b"Traceback" not in err
    assert out == b""
    assert door("list", "--json").json == {"documents": []}
    again = door("add", long)
    assert again.code == 0
    assert "reading long.txt" not in again.err, "the text was kept; only indexing goes on"
    assert [e["name"] for e in door("list", "--json").json["documents"]] == ["long.txt"]


@pytest.mark.parametrize("args", [("list",), ("models", "list", "--json")])
def test_a_reader_that_goes_away_is_no_failure_to_speak_of(filled, args):
    reading, writing = os.pipe()
    os.close(reading)
    process = filled.start(*args, stdout=writing)
    os.close(writing)
    assert process.communicate(timeout=60)[1] == b""


def test_json_is_json_whatever_the_terminal_encodes(filled, tmp_path):
    said = filled("search", "naïve 灯 😀", "--json", env={"PYTHONIOENCODING": "ascii"})
    assert said.json["query"] == "naïve 灯 😀"


def test_what_a_person_named_reaches_the_terminal_without_escapes(door, lamp):
    Path(door.home / "\x1b[31mred\x07.txt").write_bytes(lamp.read_bytes() + b"\x1b[2J\x1b]0;x\x07")
    added = door("add", door.home / "\x1b[31mred\x07.txt")
    assert added.code == 0
    shown = [
        added,
        door("rename", "lamp", "\x1b[31ma \x9b2Jlight"),
        door("list"),
        door("show", "light", "--text"),
        door("search", "lamp"),
        door("add", "\x1b[31mmissing"),
        door("show", "\x1b[31mmissing"),
        door("add", "--library", door.home / "\x1b[31mred\x07.txt", lamp),
    ]
    for said in shown:
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err
        assert "\x9b" not in said.out + said.err
