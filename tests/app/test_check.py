"""A library is damaged in every way that comes to mind; the check says so and repairs."""

import json
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from sqlalchemy import update

from memory.tables import ChunkRow, TextRow, VectorRow


@pytest.fixture
def shelf(opened, lamp, well):
    """A library of two documents, searched once."""
    library = opened()
    library.add(lamp)
    library.add(well)
    library.search("lamp")
    return library


def flaws(library, **options):
    return [(flaw.kind, flaw.repaired) for flaw in library.check(**options)]


def test_a_sound_library_has_no_flaws(shelf):
    assert flaws(shelf) == []
    assert flaws(shelf, repair=True) == []


def test_an_empty_library_has_none_either(opened):
    assert flaws(opened()) == []


def test_a_file_that_changed_or_went_is_named(shelf):
    files = [shelf.file("lamp.txt"), shelf.file("well.txt")]
    files[0].chmod(0o600)
    files[0].write_text("something else", encoding="utf-8")
    files[1].unlink()
    found = list(shelf.check(repair=True))
    assert [(f.kind, f.document_id, f.repaired) for f in found] == [
        ("file", shelf.show("lamp.txt").id, False),
        ("file", shelf.show("well.txt").id, False),
    ]
    assert "changed" in found[0].what
    assert "gone" in found[1].what


@pytest.mark.parametrize("damage", ["another letter", "cut off", "empty"])
def test_a_text_that_is_not_what_was_read_is_named(shelf, damage):
    key = shelf.show("lamp.txt").id
    with shelf._store.transaction() as session:
        row = session.get(TextRow, key)
        row.text = {
            "another letter": row.text[:50] + chr(ord(row.text[50]) + 1) + row.text[51:],
            "cut off": row.text[:-1],
            "empty": "",
        }[damage]
    found = [flaw for flaw in shelf.check(repair=True) if "not what was read" in flaw.what]
    assert [(flaw.kind, flaw.document_id, flaw.repaired) for flaw in found] == [
        ("text", key, False)
    ]


@pytest.mark.parametrize("how", ["missing", "not finite", "short"])
def test_vectors_that_are_damaged_are_made_again(shelf, how):
    with shelf._store.transaction() as session:
        row = session.get(VectorRow, (shelf.show("lamp.txt").id, shelf.embedder.name, 0))
        if how == "missing":
            session.delete(row)
        elif how == "not finite":
            values = np.frombuffer(row.data, np.float16).copy()
            values[3] = np.nan
            row.data = values.tobytes()
        else:
            row.data = row.data[:-1]
    assert ("vectors", False) in flaws(shelf)
    assert ("vectors", True) in flaws(shelf, repair=True)
    assert flaws(shelf) == []


def test_a_file_of_no_document_is_taken_away(shelf):
    folder = shelf.place.files / "ab"
    folder.mkdir()
    (folder / "stray.txt").write_text("?", encoding="utf-8")
    assert flaws(shelf) == [("orphan", False)]
    assert flaws(shelf, repair=True) == [("orphan", True)]
    assert flaws(shelf) == []


def test_spans_outside_the_text_and_gaps_are_named(shelf):
    key = shelf.show("lamp.txt").id
    with shelf._store.transaction() as session:
        session.execute(update(ChunkRow).where(ChunkRow.document_id == key).values(end=10**6))
    kinds = [flaw.what for flaw in shelf.check() if flaw.kind == "text"]
    assert any("chunks lie outside" in what for what in kinds)
    with shelf._store.transaction() as session:
        session.execute(
            update(ChunkRow).where(ChunkRow.document_id == key).values(start=40, end=60)
        )
    assert any("in no chunk" in flaw.what for flaw in shelf.check())


def index_book(tmp_path):
    return tmp_path / "library" / "index" / "dense" / "manifest.json"


def test_an_index_that_holds_something_else_is_built_anew(opened, tmp_path):
    library = opened()
    for word in ("schooner", "windmill"):
        text = " ".join(f"Line {n} tells of the {word} once more." for n in range(200))
        library.add(text.encode(), name=f"{word}.txt")
    library.search("schooner")
    library.close()
    book = index_book(tmp_path)
    data = json.loads(book.read_text())
    one, two = (ranges[0] for ranges in data["documents"].values())
    one[1], two[1] = one[1] - 1, two[1] - 1  # their last chunks change places
    for ranges, taken in zip(data["documents"].values(), (two[1], one[1]), strict=True):
        ranges.append([taken, taken + 1])
    book.write_text(json.dumps(data))
    library = opened()
    assert flaws(library) == [("index", False)] * 2
    assert flaws(library, repair=True) == [("index", True)] * 2
    assert flaws(library) == []
    found = library.search("schooner", documents=["schooner.txt"])
    assert {each.document_id for each in found} == {library.show("schooner.txt").id}


def test_an_index_under_other_numbers_follows_of_itself(opened, shelf, tmp_path):
    shelf.close()
    book = index_book(tmp_path)
    data = json.loads(book.read_text())
    one, two = data["documents"]
    data["documents"] = {one: data["documents"][two], two: data["documents"][one]}
    book.write_text(json.dumps(data))
    library = opened()
    assert flaws(library) == []
    found = library.search("schooner reef", documents=["lamp.txt"])
    assert {each.document_id for each in found} == {library.show("lamp.txt").id}


def test_rows_that_belong_to_nothing_are_named(shelf):
    with closing(sqlite3.connect(shelf.place.folder / "library.db")) as connection, connection:
        connection.execute("DELETE FROM documents WHERE name = 'well.txt'")
    found = [flaw for flaw in shelf.check() if flaw.kind == "database"]
    assert any("belongs to no documents" in flaw.what for flaw in found)


def test_check_backup_and_restore_from_the_command_line(filled, tmp_path):
    done = filled("check", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {"documents": 2, "flaws": []}
    assert "2 documents in" in filled("backup", tmp_path / "library.tar").out
    assert "2 documents in" in filled("restore", tmp_path / "library.tar", "-l", tmp_path / "b").out
    assert filled("check", "-l", tmp_path / "b").code == 0
    shutil.rmtree(tmp_path / "b" / "files")
    done = filled("check", "-l", tmp_path / "b")
    assert done.code == 1
    assert "lamp.txt: its file is gone" in done.out
