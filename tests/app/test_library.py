import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agents.answer import Answer
from agents.steps import Assembled, Confirmed, Drafted, Searched, Verified
from app.engines import Engines
from memory.errors import (
    DocumentError,
    DocumentNotFound,
    EmptyDocument,
    LibraryError,
    LibraryReadOnly,
)
from retrieval.errors import BudgetTooSmall
from serving.errors import UnknownName
from serving.scripted import ScriptedLLM


def test_an_answer_carries_a_quote_that_stands_in_the_source(opened, lamp):
    library = opened("The schooner was the Petrel.")
    book = library.add(lamp)
    answer = library.ask("Which ship struck the reef?")
    assert answer.found
    assert "Petrel" in answer.text
    best = answer.citations[0]
    assert best.quote == "The schooner Petrel struck the reef and sank."
    assert best.span.of(library.document(book.id).text) == best.quote
    assert best.section == ("Chapter 2",) or best.section[-1] == "Chapter 2"
    assert answer.usage.calls == 2  # the draft, and whether it stands


def test_the_steps_come_in_order_and_end_in_the_answer(opened, lamp):
    library = opened("Joss rowed out.")
    library.add(lamp)
    steps = list(library.read("Who rowed out to the reef?"))
    kinds = [type(step) for step in steps]
    expected = [Searched, Assembled, Drafted, Verified, Confirmed, Answer]
    assert [kind for kind in kinds if kind in expected] == expected


@pytest.mark.parametrize(
    "reply",
    [
        "NOT FOUND",
        "Not found.",
        "The passages do not mention it.",
        "The answer is not stated.",
        "It is not mentioned who owned the Petrel.",
        "There is no mention of who lit the lamp in the tower.",
        "Unknown.",
        "",
        "A walrus named Bjorn.",
    ],
)
def test_without_support_the_answer_is_not_found_and_shows_what_is_near(opened, lamp, reply):
    library = opened(reply)
    library.add(lamp)
    answer = library.ask("What was the name of the dog?")
    assert not answer.found
    assert answer.text == "Not found in this document."
    assert answer.citations == ()
    assert answer.nearest


def test_a_number_that_stands_nowhere_has_no_support(opened, lamp):
    library = opened("Joss pulled 12 sailors from the water.")
    library.add(lamp)
    assert not library.ask("How many sailors did Joss pull from the water?").found


def test_a_sentence_without_support_is_marked_beside_one_with(opened, lamp):
    library = opened("The schooner Petrel struck the reef. Bananas ripen in Norway.")
    library.add(lamp)
    answer = library.ask("What happened to the ship?")
    assert answer.found
    assert answer.unsupported == ("Bananas ripen in Norway.",)


def test_the_full_reader_reads_everything(opened, lamp):
    library = opened("The captain was named Orlov.")
    library.add(lamp)
    answer = library.ask("What was the captain's name?", reader="full")
    assert "Orlov" in answer.citations[0].quote
    assert "three shillings" in library.model.seen[0][-1].content


def test_only_the_asked_documents_are_read(opened, lamp, well):
    library = opened("forty feet", "NOT FOUND")
    library.add(lamp)
    deep = library.add(well)
    answer = library.ask("How deep was the well?", documents=["well.txt"])
    assert {c.document_id for c in answer.citations} == {deep.id}
    library.ask("How deep was the well?", documents=["lamp.txt"])
    assert all("Ansty" not in messages[-1].content for messages in library.model.seen[2:])


def test_adding_the_same_bytes_again_does_nothing(opened, lamp, tmp_path):
    library = opened()
    first = library.add(lamp, tags=["sea"])
    twin = tmp_path / "other-name.txt"
    twin.write_bytes(lamp.read_bytes())
    again = library.add(twin)
    assert again.id == first.id
    assert again.name == "lamp.txt"
    assert len(library.list()) == 1
    assert library.list(tag="sea") == library.list()
    assert library.list(tag="land") == ()


def test_bytes_can_be_added_and_need_a_name(opened):
    library = opened()
    entry = library.add(b"Mira lit the lamp.", name="note.txt")
    assert library.document(entry.id).text == "Mira lit the lamp."
    assert library.file("note.txt").read_bytes() == b"Mira lit the lamp."
    with pytest.raises(ValueError, match="name"):
        library.add(b"x")


def test_a_folder_is_added_whole_and_a_bad_file_does_not_stop_it(opened, lamp, well, tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / ".hidden.txt").write_bytes(b"hidden")
    library = opened(place=tmp_path / "elsewhere" / "library")
    added, failed = library.add_folder(tmp_path / ".")
    assert {e.name for e in added} == {"lamp.txt", "well.txt"}
    assert [f.path.name for f in failed] == ["empty.txt"]
    assert "empty" in str(failed[0].error)


def test_deleting_leaves_nothing_behind(opened, lamp, well, tmp_path):
    library = opened()
    keep = library.add(well)
    gone = library.add(lamp)
    assert library.search("Petrel schooner")
    library.delete(gone.id)
    assert [c.document_id for c in library.search("Petrel schooner")] == [keep.id] * len(
        library.search("Petrel schooner")
    )
    library.close()
    for path in (tmp_path / "library").rglob("*"):
        if path.is_file():
            assert b"Petrel" not in path.read_bytes(), path
            assert b"petrel" not in path.read_bytes(), path
    assert not list((tmp_path / "library" / "files").rglob(f"{gone.id}*"))


def test_documents_are_found_by_id_name_title_and_part(opened, lamp, well):
    library = opened()
    a, b = library.add(lamp), library.add(well)
    assert library.show(a.id[:6]) == a
    assert library.show("well.txt") == b
    assert library.rename("lamp.txt", "A Light at Sea").title == "A Light at Sea"
    assert library.show("light at").id == a.id
    assert library.document(a.id).title == "A Light at Sea"
    with pytest.raises(DocumentNotFound, match="several"):
        library.show("txt")
    with pytest.raises(DocumentNotFound, match="gistree list"):
        library.show("moby")


def test_a_document_is_not_deleted_for_one_that_is_named_like_it(opened, lamp, well):
    library = opened()
    kept = library.add(lamp.rename(lamp.with_name("10.txt")))
    library.add(well.rename(well.with_name("0.txt")))
    library.delete("0.txt")
    for name in ("0.txt", "10.t", kept.id[:6]):
        with pytest.raises(DocumentNotFound):
            library.delete(name)
    assert library.list() == (kept,)


def test_a_second_library_object_sees_what_the_first_adds_and_deletes(opened, lamp, well):
    one, two = opened(), opened()
    book = one.add(lamp)
    assert two.search("storm")[0].document_id == book.id
    two.delete(book.id)
    assert one.search("storm") == ()
    one.add(well)
    assert len(two.search("well water")) > 0


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("missing.txt", DocumentNotFound, "no file"),
        (".", DocumentError, "folder"),
    ],
)
def test_what_cannot_be_added_says_why(opened, tmp_path, source, error, words):
    with pytest.raises(error, match=words):
        opened().add(tmp_path / source)


def test_an_empty_file_and_an_empty_folder(opened, tmp_path):
    (tmp_path / "e").mkdir()
    (tmp_path / "e.txt").write_bytes(b"")
    library = opened()
    with pytest.raises(EmptyDocument, match=r"e\.txt"):
        library.add(tmp_path / "e.txt")
    with pytest.raises(DocumentNotFound, match="no files"):
        library.add_folder(tmp_path / "e")
    assert library.list() == ()


def test_a_question_needs_a_word_and_a_library_a_document(opened, lamp):
    library = opened()
    with pytest.raises(DocumentNotFound, match="empty"):
        library.ask("Who?")
    library.add(lamp)
    with pytest.raises(ValueError, match="word"):
        library.ask(" \0 ")
    with pytest.raises(UnknownName, match=r"known: .*full, .*oprag"):
        library.ask("Who?", reader="magic")
    with pytest.raises(BudgetTooSmall, match="raise budget_tokens"):
        library.ask("Who?", budget_tokens=1)


def test_a_question_of_100000_characters_is_answered(opened, lamp):
    library = opened("The Petrel sank.")
    library.add(lamp)
    answer = library.ask("Which ship sank? " + "really " * 14_000)
    assert answer.found
    assert len(library.model.seen[0][-1].content) < 20_000


def test_surrogates_and_nul_in_names_and_questions(opened, tmp_path):
    name = os.fsdecode(b"caf\xe9.txt")
    path = tmp_path / name
    path.write_text("The lamp burned all night.", encoding="utf-8")
    library = opened("The lamp burned.")
    entry = library.add(path)
    entry.name.encode("utf-8")
    assert library.add(b"x y z", name="a\0b\ud800.txt").name == "ab?.txt"
    assert library.ask("Did the lamp\0 burn\ud800?").found


def test_a_read_only_library_answers_and_refuses_changes(opened, lamp):
    book = opened().add(lamp)
    library = opened("The Petrel sank.", read_only=True)
    assert library.ask("Which ship sank?").found
    for change in (
        lambda: library.add(b"x", name="x.txt"),
        lambda: library.delete(book.id),
        lambda: library.rename(book.id, "y"),
        lambda: library.tag(book.id, "z"),
        library.finish_interrupted,
    ):
        with pytest.raises(LibraryReadOnly):
            change()


def test_a_folder_without_write_permission_is_read_only(opened, lamp, tmp_path):
    with tempfile.TemporaryDirectory() as above:  # pytest's own folders admit their owner only
        folder = Path(above) / "library"
        library = opened(place=folder)
        library.add(lamp)
        library.close()
        Path(above).chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        code = (
            "import os, sys\n"
            "from app.library import Library\n"
            "from app.settings import Settings\n"
            "from memory.errors import LibraryReadOnly\n"
            "Library(sys.argv[1], read_only=True).list()  # loads every module\n"
            "settings = Settings(library=sys.argv[1])\n"
            "os.geteuid() or (os.setgid(65534), os.setuid(65534))\n"
            "library = Library(settings=settings)\n"
            "print([e.name for e in library.list()], library.read_only)\n"
            "try:\n    library.add(b'x', name='x.txt')\n"
            "except LibraryReadOnly as error:\n    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True
        )
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.stdout.startswith("['lamp.txt'] True\nthe library"), done.stderr
    assert "reading only" in done.stdout


def test_a_file_in_place_of_a_library(opened, lamp):
    with pytest.raises(LibraryError, match="is a file"):
        opened(place=lamp)


@pytest.mark.parametrize("left", [None, b""])
def test_files_stay_where_their_database_is_lost(opened, lamp, tmp_path, left):
    """A new database would know none of them, and they would be swept away as nobody's."""
    with opened() as library:
        library.add(lamp)
        file = library.file("lamp.txt")
    database = tmp_path / "library" / "library.db"
    kept = database.read_bytes()
    database.unlink()
    if left is not None:
        database.write_bytes(left)
    for _ in range(2):
        with pytest.raises(LibraryError, match=r"is gone or empty, but files .* are there"):
            opened()
    assert file.exists()
    assert not list(database.parent.glob("library.db-*"))
    database.write_bytes(kept)
    assert [entry.name for entry in opened().list()] == ["lamp.txt"]


def test_a_damaged_database_is_said(opened, tmp_path):
    folder: Path = tmp_path / "broken"
    folder.mkdir()
    (folder / "library.db").write_bytes(b"this is no database at all" * 200)
    with pytest.raises(LibraryError, match="cannot be opened"):
        opened(place=folder)


def test_a_model_that_nobody_asks_is_let_go_and_comes_back(opened, lamp, monkeypatch):
    models = []

    def open_another(_settings):
        models.append(ScriptedLLM(["The Petrel sank."] * 3))
        return models[-1]

    monkeypatch.setattr("app.engines.open_model", open_another)
    library = opened()
    library.engines = Engines(library.settings, model=None, embedder=library.embedder)
    library.add(lamp)
    steps = library.read("What sank?", reader="oprag")
    next(steps)
    assert not library.rest(0)  # a question is being answered
    for _ in steps:
        pass
    assert not library.rest(60)
    assert library.rest(0)
    assert not library.rest(0)
    assert library.ask("What sank?", reader="oprag").found
    assert len(models) == 2


def test_a_model_that_was_handed_in_stays(opened):
    library = opened("A reply.")
    given = library.model
    assert not library.rest(0)
    assert library.model is given
