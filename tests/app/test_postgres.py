"""A library in PostgreSQL: a real server, in a folder of its own."""

import threading
from collections.abc import Iterator

import pytest
from fakes import HashingEmbedder
from postgres_server import PostgresServer
from sqlalchemy import text

from app import place
from app.foreman import Foreman
from app.job_run import run_job
from app.library import Library
from app.settings import Settings
from memory.errors import LibraryError, LibraryTooNew
from serving.scripted import ScriptedLLM

pytest.importorskip("psycopg", reason="needs the extra postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    yield running
    running.close()


@pytest.fixture
def at(server, tmp_path, monkeypatch):
    """Opens a fresh database, as often as it is called."""
    monkeypatch.setattr(place.platformdirs, "user_data_path", lambda _: tmp_path / "data")
    server.empty()
    libraries: list[Library] = []

    def open_one(*replies: str) -> Library:
        library = Library(
            f"{server.url}/books",
            settings=Settings(pruner="none"),
            model=ScriptedLLM(list(replies)),
            embedder=HashingEmbedder(),
        )
        libraries.append(library)
        return library

    yield open_one
    for library in libraries:
        library.close()


def test_a_document_is_added_asked_and_deleted(at, lamp, well):
    library = at("The schooner was the Petrel.")
    book = library.add(lamp, tags=["sea"])
    assert library.add(lamp) == book
    library.add(well)
    answer = library.ask("Which ship struck the reef?")
    assert answer.found
    assert answer.citations[0].quote == "The schooner Petrel struck the reef and sank."
    assert library.rename(book.id, "Ein Licht – 灯 😀").title == "Ein Licht – 灯 😀"
    assert library.list(tag="sea")[0].id == book.id
    library.delete(book.id)
    assert [e.name for e in library.list()] == ["well.txt"]
    assert not [c for c in library.search("Petrel schooner") if "Petrel" in c.quote]
    with library._store.transaction() as session:
        for table in ("texts", "pages", "sections", "tags", "chunks", "vectors"):
            query = text(f"SELECT count(*) FROM {table} WHERE document_id = :key")
            assert session.scalar(query, {"key": book.id}) == 0
    assert not list(library.place.files.rglob(f"{book.id}*"))


def test_a_second_library_sees_what_the_first_does(at, lamp):
    one, two = at(), at()
    book = one.add(lamp)
    assert two.search("storm")[0].document_id == book.id
    two.delete(book.id)
    assert one.search("storm") == ()


def test_chunks_come_back_in_the_order_of_the_text(at, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text("\n\n".join(f"Lamp number {i} burned all night. " * 12 for i in range(2500)))
    library = at()
    book = library.add(long)
    chunks = library._store.chunks(book.id)
    assert len(chunks) > 1000
    assert [c.start for c in chunks] == sorted(c.start for c in chunks)
    assert len(library._store.vectors(book.id, library.embedder.name)) == len(chunks)


def test_two_first_writers_at_once(at, tmp_path):
    """Both make the tables, count the first document, and add the same files."""
    paths = []
    for number in range(5):
        path = tmp_path / f"tale-{number}.txt"
        path.write_text(f"Tale {number}\n\n" + f"Lamp {number} burned all night. " * 40)
        paths.append(path)
    failures: list[BaseException] = []
    start = threading.Barrier(3)

    def write(order):
        try:
            start.wait(30)
            library = at()
            for path in order:
                library.add(path)
        except BaseException as error:
            failures.append(error)

    orders = (paths, paths[::-1], paths[2:] + paths[:2])
    writers = [threading.Thread(target=write, args=(order,)) for order in orders]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert failures == []
    library = at()
    assert sorted(e.name for e in library.list()) == [p.name for p in paths]
    assert library._store.generation() == len(paths)
    assert library.search("Lamp 3")


def test_a_connection_that_is_cut_between_calls_is_made_anew(at, server, lamp):
    library = at()
    book = library.add(lamp)
    server.cut()
    assert [e.id for e in library.list()] == [book.id]
    assert library.search("storm")


def test_a_server_that_is_gone_or_refuses_is_named_without_the_password(at, server, tmp_path):
    for url in ("postgresql://me:secret@127.0.0.1:9/books", f"{server.url}/nosuch"):
        with pytest.raises(LibraryError, match=r"postgresql://.*failed") as error:
            Library(url, settings=Settings())
        assert "secret" not in str(error.value)


def test_a_library_of_a_newer_version_says_upgrade(at, server):
    at()
    server.say("UPDATE alembic_version SET version_num = '9999'", "books")
    with pytest.raises(LibraryTooNew, match=r"9999.*upgrade"):
        at()


def test_nul_and_lone_surrogates_do_not_reach_the_database(at):
    library = at()
    book = library.add(b"The lamp\0 burned \xed\xa0\x80 all night.", name="a\0b\ud800.txt")
    library.rename(book.id, "x\0y\ud800")
    library.tag(book.id, "t\0u\ud800")
    assert library.show(book.id).title == "xy?"
    assert library.search("lamp\0\ud800")


def test_jobs_are_shared_and_done_once(at, lamp):
    one, two = at(), at()
    one.jobs.add_file(lamp)
    (job,) = two.jobs.list()
    assert two.jobs.book.claim(job.id, owner="two", now=1.0)
    assert not one.jobs.book.claim(job.id, owner="one", now=1.0)
    assert run_job(two, two.jobs.get(job.id), owner="two", secret="")
    assert one.jobs.get(job.id).state == "done"
    one.jobs.delete(one.list()[0].id, wait_s=0)
    with Foreman(two):
        for _ in range(100):
            if not one.list():
                break
            threading.Event().wait(0.1)
    assert one.list() == ()
    assert one.jobs.list() == ()


def test_a_batch_goes_on_when_its_connections_are_cut(at, server, lamp, tmp_path):
    library = at(*["The schooner was the Petrel."] * 20)
    library.add(lamp)
    source, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    source.write_text('{"question": "Which ship struck the reef?"}\n' * 6, encoding="utf-8")

    totals = library.batch(source, out, on_event=lambda _event: server.cut())
    assert (totals.finished, totals.failed) == (6, 0)


def test_what_check_and_backup_say_of_a_library_in_postgresql(at, lamp, tmp_path):
    library = at()
    book = library.add(lamp)
    assert list(library.check()) == []
    library.file(book.id).unlink()
    assert [flaw.kind for flaw in library.check()] == ["file"]
    with pytest.raises(LibraryError, match="pg_dump"):
        library.backup(tmp_path / "library.tar")
