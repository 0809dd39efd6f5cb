"""Bad input at the command line: what is said, what the exit code is, and that nothing is lost."""

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from door import EMBEDDER

from app import ingest
from memory.errors import DocumentNotFound
from serving.catalogue import card
from serving.errors import MissingExtra

SHARED = Path(os.environ.get("GISTREE_SHARED", Path(__file__).parents[2] / ".." / "shared"))


def nasty(name: str) -> Path:
    path = SHARED / "docs" / "nasty" / name
    if not path.exists():
        pytest.skip(f"the shared document {name} is not here (set GISTREE_SHARED)")
    return path


def names(door) -> list[str]:
    return [e["name"] for e in door("list", "--json").json["documents"]]


# ---- files -------------------------------------------------------------------------------------


def test_an_encrypted_file_needs_its_password(door):
    locked = nasty("enc-user-password-r6.pdf")
    for password in ((), ("--password", "guess")):
        said = door("add", locked, *password)
        assert said.code == 1
        assert "enc-user-password-r6.pdf" in said.err
        assert "--password" in said.err
    assert names(door) == []
    assert door("add", locked, "--password", "asdfzxcv").code == 0
    assert names(door) == ["enc-user-password-r6.pdf"]


def test_a_wrong_extension_is_seen_through(door):
    html, pdf = nasty("wrong-ext-html-as-pdf.pdf"), nasty("wrong-ext-pdf-as-docx.docx")
    added = door("add", html, pdf, nasty("nul-and-control.txt"), "--json")
    assert added.code == 0, added.err
    assert [e["media_type"] for e in added.json["added"]][:2] == ["text/html", "application/pdf"]


def test_names_that_are_no_text(door, lamp):
    odd = os.fsencode(door.home) + b"/caf\xe9.txt"
    Path(os.fsdecode(odd)).write_bytes(lamp.read_bytes())
    added = door("add", odd, b"missing-\xff.txt", "--json")
    assert added.code == 3
    assert added.json["added"][0]["name"] == "caf?.txt"
    assert "there is no file missing-?.txt" in added.json["failed"][0]["error"]
    assert added.json["failed"][0]["path"] == os.fsdecode(b"missing-\xff.txt")
    assert door("rename", "caf", b"th\xe9").code == 0
    assert "th?" in door("list").out
    assert door("search", b"lamp \xff").code == 0


def test_paths_that_cannot_be(door):
    said = door("add", "n" * 300, "~nobody-of-that-name/x.txt", "lamp.txt/x", "/dev/null")
    assert said.code == 1
    assert f"not added: {'n' * 300} cannot be read: File name too long" in said.err
    assert "not added: there is no file ~nobody-of-that-name/x.txt" in said.err
    assert "not added: there is no file lamp.txt/x" in said.err
    assert "not added: there is no file /dev/null" in said.err


def test_a_missing_extra_stops_neither_the_folder_nor_the_next_start(
    opened, lamp, well, monkeypatch, tmp_path
):
    read = ingest.read_document

    def read_without_extras(path, *, name, **options):
        if name == "slides.pptx":
            raise MissingExtra("slides.pptx", "llama-index")
        return read(path, name=name, **options)

    monkeypatch.setattr(ingest, "read_document", read_without_extras)
    (tmp_path / "slides.pptx").write_bytes(b"PK")
    library = opened(place=tmp_path / "elsewhere" / "library")
    added, failed = library.add_folder(tmp_path)
    assert [e.name for e in added] == ["lamp.txt", "well.txt"]
    assert [f.path.name for f in failed] == ["slides.pptx"]
    assert "pip install 'gistree[llama-index]'" in str(failed[0].error)
    assert library.finish_interrupted() == ()
    with pytest.raises(DocumentNotFound):
        library.show("slides.pptx")


# ---- questions ---------------------------------------------------------------------------------


def test_questions_that_cannot_be_answered_say_why(filled):
    for args, said in {
        ("who?", "--reader", "magic"): "no reader is named 'magic'; known: ",
        ("who sank?", "--budget", "1"): "raise budget_tokens",
        ("who?", "--doc", "moby"): "the library holds no document 'moby'; see: gistree list",
        (" ",): "a question needs at least one word",
        (b"\xff",): "",
    }.items():
        got = filled("ask", *args)
        assert said in got.err
        assert got.code == (1 if said else 0)


def test_a_question_of_100000_characters_is_answered(filled):
    answer = filled("ask", "Which ship struck the reef? " + "really " * 14_282, "--json").json
    assert answer["found"] is True
    assert len(answer["question"]) > 100_000


def test_a_question_without_a_model_says_how_to_get_one(filled, tmp_path):
    for path in card(EMBEDDER).files:
        (tmp_path / path.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.path).symlink_to(filled.models / path.path)
    for model, said in {
        "qwen2.5-coder-1.5b-instruct": "gistree models fetch qwen2.5-coder-1.5b-instruct",
        "gpt-9": "no model is named 'gpt-9'; known: ",
        str(tmp_path / "nothing.gguf"): "nothing.gguf",
        "http://127.0.0.1:9": "cannot be reached",
    }.items():
        got = filled("ask", "who?", env={"GISTREE_MODELS": str(tmp_path), "GISTREE_MODEL": model})
        assert got.code == 1
        assert said in got.err


def test_without_an_embedder_a_search_says_how_to_get_it(filled, tmp_path):
    got = filled("search", "lamp", env={"GISTREE_MODELS": str(tmp_path)})
    assert got.code == 1
    assert f"gistree models fetch {EMBEDDER}" in got.err


# ---- libraries and settings --------------------------------------------------------------------


def test_a_misspelt_setting_is_named(door):
    door.settings.parent.mkdir(parents=True)
    door.settings.write_text('modle = "x"\n')
    said = door("list")
    assert said.code == 1
    assert said.err.startswith(f"gistree: the settings file {door.settings}: no setting is named")
    assert "did you mean 'model'?" in said.err


def test_a_newer_library_says_upgrade_and_is_left_alone(door, lamp):
    door("add", lamp)
    database = door.library / "library.db"
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for command in (("list",), ("add", lamp)):
        said = door(*command)
        assert said.code == 1
        assert "made by a newer gistree (its format is 9999); upgrade: pip install" in said.err


def test_places_that_are_no_library(door, lamp):
    for place, said in {
        str(lamp): "is a file; a library is a folder",
        "oracle://host/books": "names no database that gistree keeps libraries in",
        "sqlite://": "a library needs a file",
    }.items():
        got = door("list", "--library", place)
        assert got.code == 1
        assert said in got.err


# ---- disks -------------------------------------------------------------------------------------


def test_a_file_past_what_may_be_written_says_free_some(door, lamp, tmp_path):
    door("add", lamp)
    big = tmp_path / "big.txt"
    big.write_text("The lamp burned all night.\n\n" * 40_000)
    said = door(
        "add", big, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600_000,) * 2)
    )
    assert said.code == 1
    assert "no space is left where the library" in said.err
    assert "free some and run the same command again" in said.err
    assert names(door) == ["lamp.txt"]
    assert not list((door.library / "files").rglob(".incoming*"))


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("mount is not here")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_library_on_a_read_only_disk_answers_and_takes_nothing(door, filled, lamp, small_disk):
    door.env = {"GISTREE_LIBRARY": str(small_disk / "library"), **filled.env}
    door("add", lamp)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    asked = door("ask", "Which ship struck the reef?")
    assert asked.code == 0, asked.err
    assert "Petrel" in asked.out
    for change in (("tag", "lamp.txt", "sea"), ("add", Path(__file__))):
        refused = door(*change)
        assert refused.code == 1
        assert "was opened for reading only" in refused.err
    elsewhere = door("list", "--library", small_disk / "another")
    assert elsewhere.code == 1
    assert "cannot be written" in elsewhere.err


@pytest.mark.slow
@pytest.mark.parametrize("room_bytes", [0, 250_000])
def test_a_full_disk_loses_nothing_and_the_same_command_finishes(
    door, lamp, small_disk, tmp_path, room_bytes
):
    """Full when the document is claimed, and when its text is kept."""
    door.env["GISTREE_LIBRARY"] = str(small_disk / "library")
    assert door("add", lamp).code == 0
    tale = tmp_path / "tale.txt"
    tale.write_text("\n\n".join(f"Lamp number {i} burned all night." * 5 for i in range(600)))
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        file.write(bytes(shutil.disk_usage(small_disk).free - room_bytes))
    said = door("add", tale)
    assert said.code == 1
    assert "no space is left where the library" in said.err
    assert "free some" in said.err
    found = door("search", "Petrel", "--json")
    assert found.code in (0, 1)  # it may need room for its index
    assert found.code == 0 or "no space is left" in found.err or "make room" in found.err
    filler.unlink()
    assert names(door) == ["lamp.txt"]
    assert door("add", tale).code == 0
    assert sorted(names(door)) == ["lamp.txt", "tale.txt"]
    assert door("search", "Petrel", "--json").json["passages"]
    with sqlite3.connect(small_disk / "library" / "library.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
