import sqlite3
import threading
from datetime import UTC, datetime

import numpy as np
import pytest
from sqlalchemy import inspect
from sqlalchemy import text as sql

from memory.artefacts import Artefacts
from memory.database import _MIGRATIONS, connect, revisions, sqlite_url
from memory.document import Document, Page, Problem, Section, Span
from memory.errors import (
    DocumentNotFound,
    LibraryError,
    LibraryReadOnly,
    LibraryTooNew,
    StorageFull,
)
from memory.intake import Intake
from memory.store import Entry, Store, header
from memory.tables import TextRow, text_digest
from memory.verify import text_flaws
from serving.model import Usage

TALE = "The Lamp\n\nMira lit the lamp.\n\nThe wind put it out."


def tale(key: str = "a" * 64) -> Document:
    return Document(
        id=key,
        name="tale.txt",
        title="The Lamp",
        media_type="text/plain",
        text=TALE,
        pages=(Page(0, "i", Span(0, 28)), Page(1, "", Span(30, 50), "ocr")),
        sections=(Section("The Lamp", 1, Span(0, 50)),),
        problems=(Problem("page 2 is faint", "scan it again", 1),),
        size_bytes=50,
    )


def entry(key: str = "a" * 64) -> Entry:
    return Entry(
        id=key,
        name="tale.txt",
        title="",
        media_type="",
        language="",
        paged=False,
        size_bytes=50,
        file="aa/tale.txt",
        added_at=datetime.now(UTC),
        state="reading",
        num_pages=0,
        pages_read=0,
        num_words=0,
    )


@pytest.fixture
def store(tmp_path):
    store = Store(connect(sqlite_url(tmp_path / "library.db")), where=str(tmp_path))
    yield store
    store.close()


def put(store: Store, document: Document) -> None:
    intake = Intake(store)
    assert intake.claim(entry(document.id), owner="me", now=100.0, stale_s=60) is None
    intake.put_text(document, [Span(0, 28), Span(30, 50)])
    intake.put_vectors(document.id, embedder="e", first=0, vectors=np.eye(2, 4, dtype=np.float32))
    intake.finish(document.id)


def test_a_document_comes_back_as_it_went_in(store):
    put(store, tale())
    assert store.document("a" * 64) == tale()
    assert header(tale(), Span(10, 20)) == "The Lamp › The Lamp"


def test_a_document_is_unseen_until_it_is_finished(store):
    intake = Intake(store)
    before = store.generation()
    intake.claim(entry(), owner="me", now=100.0, stale_s=60)
    intake.put_text(tale(), [Span(0, 28)])
    assert store.entries() == []
    assert store.document_ids() == set()
    assert store.first_chunks() == {}
    assert [e.state for e in store.entries(state=None)] == ["reading"]
    intake.finish("a" * 64)
    assert store.document_ids() == {"a" * 64}
    assert store.first_chunks() == {"a" * 64: store.chunk_ids("a" * 64)[0]}
    assert store.generation() == before + 1


def test_a_claim_is_exclusive_until_its_owner_falls_silent(store):
    intake = Intake(store)
    assert intake.claim(entry(), owner="first", now=100.0, stale_s=60) is None
    assert intake.claim(entry(), owner="second", now=150.0, stale_s=60) == "first"
    assert intake.beat("a" * 64, owner="first", now=160.0)
    assert intake.claim(entry(), owner="second", now=215.0, stale_s=60) == "first"
    assert intake.claim(entry(), owner="second", now=221.0, stale_s=60) is None
    assert not intake.beat("a" * 64, owner="first", now=222.0)
    intake.unclaim("a" * 64, owner="second")
    assert intake.claim(entry(), owner="third", now=223.0, stale_s=60) is None
    intake.finish("a" * 64)
    assert intake.claim(entry(), owner="fourth", now=900.0, stale_s=60) == "ready"


def test_vectors_come_back_only_when_all_are_there(store):
    intake = Intake(store)
    intake.claim(entry(), owner="me", now=1.0, stale_s=60)
    intake.put_text(tale(), [Span(0, 10), Span(10, 28), Span(30, 50)])
    intake.put_vectors("a" * 64, embedder="e", first=0, vectors=np.eye(2, 4, dtype=np.float32))
    assert intake.num_embedded("a" * 64, "e") == 2
    assert store.vectors("a" * 64, "e") is None
    intake.put_vectors("a" * 64, embedder="e", first=2, vectors=np.ones((1, 4), np.float32))
    assert intake.num_embedded("a" * 64, "e") == 3
    vectors = store.vectors("a" * 64, "e")
    assert vectors is not None
    np.testing.assert_array_equal(vectors, [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]])
    assert store.vectors("a" * 64, "another") is None


def test_deleting_takes_everything_and_numbers_are_not_used_again(store, tmp_path):
    put(store, tale())
    old = store.chunk_ids("a" * 64)
    store.tag("a" * 64, ["x"])
    assert store.delete("a" * 64).name == "tale.txt"
    assert store.places(list(old)) == {}
    with store.transaction() as session:
        for table in ("documents", "texts", "pages", "sections", "problems", "tags", "chunks"):
            assert session.execute(sql(f"select count(*) from {table}")).scalar() == 0
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Mira" not in kept
    put(store, tale())
    assert min(store.chunk_ids("a" * 64)) > max(old)
    with pytest.raises(DocumentNotFound):
        store.delete("b" * 64)


def test_rename_and_tags(store):
    put(store, tale())
    store.rename("a" * 64, "A Lamp")
    store.tag("a" * 64, ["fiction", "short", "fiction"])
    assert (store.entry("a" * 64).title, store.entry("a" * 64).tags) == (
        "A Lamp",
        ("fiction", "short"),
    )
    with pytest.raises(DocumentNotFound):
        store.rename("b" * 64, "x")


def test_the_forms_of_the_tables_are_those_that_alembic_knows():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert revisions() == [r.revision for r in script.walk_revisions()][::-1]
    assert revisions()[-1] == script.get_current_head()


def test_texts_of_an_older_library_get_their_digests_when_it_is_opened(tmp_path):
    from alembic import command
    from alembic.config import Config

    url = sqlite_url(tmp_path / "library.db")
    store = Store(connect(url), where="here")
    put(store, tale())
    document = store.document(tale().id)
    store.close()
    engine = connect(url)
    with engine.connect() as connection:
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        command.downgrade(config, "0004")
        connection.commit()
        columns = inspect(connection).get_columns("texts")
        assert {column["name"] for column in columns} == {"document_id", "text"}
    store = Store(engine, where="here")
    with store.transaction() as session:
        kept = session.get(TextRow, document.id)
        assert kept.digest == text_digest(document.text)
        kept.text += "!"
    assert [flaw.kind for flaw in text_flaws(store, store.document(document.id))] == ["text"]
    store.close()


def test_a_library_that_needs_a_change_is_not_changed_when_read_only(tmp_path):
    engine = connect(sqlite_url(tmp_path / "library.db"))
    with pytest.raises(LibraryReadOnly, match="holds no library yet"):
        Store(engine, where="here", read_only=True)
    Store(engine, where="here").close()
    with engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    with pytest.raises(LibraryTooNew, match="newer gistree"):
        Store(engine, where="here", read_only=True)


def test_a_library_of_a_newer_version_is_left_alone(tmp_path):
    engine = connect(sqlite_url(tmp_path / "library.db"))
    Store(engine, where="here").close()
    with engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    with pytest.raises(LibraryTooNew, match="newer gistree"):
        Store(engine, where="here")


def test_a_full_disk_is_said_and_nothing_is_lost(store):
    put(store, tale())
    with store.transaction() as session:
        pages = session.execute(sql("pragma page_count")).scalar()
    store._engine.dispose()

    from sqlalchemy import event

    event.listen(store._engine, "connect", lambda c, _: c.execute(f"pragma max_page_count={pages}"))
    big = tale("c" * 64)
    intake = Intake(store)
    intake.claim(entry(big.id), owner="me", now=1.0, stale_s=60)
    with pytest.raises(StorageFull, match="free some"):
        intake.put_vectors(
            big.id, embedder="e", first=0, vectors=np.ones((9000, 384), dtype=np.float32)
        )
    assert store.document("a" * 64) == tale()


def test_a_read_only_library_reads_and_says_so_when_written(store, tmp_path):
    put(store, tale())
    store.reclaim()
    url = sqlite_url(tmp_path / "library.db", read_only=True)
    closed = Store(connect(url), where="here", read_only=True)
    assert closed.document("a" * 64) == tale()
    with pytest.raises(LibraryReadOnly):
        closed.rename("a" * 64, "x")
    closed.close()


def test_documents_added_within_one_second_are_listed_in_order(store):
    keys = [letter * 64 for letter in "dacb"]
    for key in keys:
        put(store, tale(key))
    assert [e.id for e in store.entries()] == keys


def test_who_reads_before_writing_waits_for_other_writers_instead_of_failing(store, tmp_path):
    """Each looks first and writes then, from connections of its own, all at once."""
    document = tale()
    put(store, document)
    other = Store(connect(sqlite_url(tmp_path / "library.db")), where="again")
    failed = []

    def work(mine: Store, name: str) -> None:
        try:
            for n in range(25):
                mine.tag(document.id, [f"{name}{n}"])
                Artefacts(mine).put(
                    document.id, f"{name}{n}", kind="gist", data={"n": n}, usage=Usage()
                )
                Intake(mine).put_vectors(
                    document.id, embedder=name, first=0, vectors=np.eye(2, 4, dtype=np.float32)
                )
        except LibraryError as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(mine, name))
        for mine, name in ((store, "a"), (store, "b"), (other, "c"), (other, "d"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert not failed
    keys = [f"{name}{n}" for name in "abcd" for n in range(25)]
    assert Artefacts(store).find(document.id, keys).keys() == set(keys)


def test_the_right_to_write_is_taken_before_anything_is_looked_at(store, tmp_path):
    put(store, tale())
    with store.writing() as session:
        session.execute(sql("SELECT 1"))
        raw = sqlite3.connect(tmp_path / "library.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            raw.execute("BEGIN IMMEDIATE")
        raw.close()
    with store.transaction() as session:
        session.execute(sql("SELECT count(*) FROM documents"))
        raw = sqlite3.connect(tmp_path / "library.db", timeout=0)
        raw.execute("BEGIN IMMEDIATE")  # who reads is in nobody's way
        raw.close()
