"""A library in PostgreSQL whose connections are cut and whose server goes away in mid-work."""

import threading
import time
from collections.abc import Iterator

import pytest
from fakes import HashingEmbedder
from postgres_server import PostgresServer

from app import place
from app.batch.journal import Journal
from app.batch.questions import questions
from app.batch.run import RowDone, Runner, Waiting
from app.library import Library
from app.settings import Settings
from memory.errors import LibraryError
from serving.scripted import Reply, ScriptedLLM

pytest.importorskip("psycopg", reason="needs the extra postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    yield running
    running.close()


@pytest.fixture
def at(server, tmp_path, monkeypatch):
    """Opens libraries in one fresh database."""
    monkeypatch.setattr(place.platformdirs, "user_data_path", lambda _: tmp_path / "data")
    server.empty()
    libraries: list[Library] = []

    def open_one(*replies, embedder=None) -> Library:
        library = Library(
            f"{server.url}/books",
            settings=Settings(pruner="none"),
            model=ScriptedLLM(list(replies)),
            embedder=embedder or HashingEmbedder(),
        )
        libraries.append(library)
        return library

    yield open_one
    for library in libraries:
        library.close()


def tale(tmp_path, number, words=30_000):
    path = tmp_path / f"tale-{number}.txt"
    lines = (f"Lamp {number} burned all night, it was night {n}.\n\n" for n in range(words // 9))
    path.write_text("".join(lines), encoding="utf-8")
    return path


class Interrupting(HashingEmbedder):
    """An embedder that has something done before its second batch."""

    def __init__(self, does):
        super().__init__()
        self._does, self.batches = does, 0

    def embed(self, texts):
        self.batches += 1
        if self.batches == 2:
            self._does()
        return super().embed(texts)


def whole(library, num_documents):
    """Whether the library holds so many documents and is as it should be."""
    assert list(library.check()) == []
    entries = library._store.entries(state=None)
    return [entry.state for entry in entries] == ["ready"] * num_documents


def test_connections_that_are_cut_between_two_batches_of_vectors_are_made_anew(
    at, server, tmp_path
):
    library = at(embedder=Interrupting(server.cut))
    library.add(tale(tmp_path, 1))
    assert library.embedder.batches > 2
    assert whole(library, 1)


def test_a_server_that_stops_in_mid_add_is_named_and_the_same_add_goes_on(at, server, tmp_path):
    library = at(embedder=Interrupting(server.stop))
    path = tale(tmp_path, 1)
    try:
        with pytest.raises(LibraryError, match=r"postgresql://.*failed"):
            library.add(path)
    finally:
        server.start()
    begun = time.monotonic()
    library.add(path)
    assert time.monotonic() - begun < 30  # and not until the claim has grown stale
    assert library.embedder.batches > 2
    assert whole(library, 1)


def test_two_writers_whose_connections_are_cut_all_the_time_lose_and_double_nothing(
    at, server, tmp_path
):
    paths = [tale(tmp_path, number, words=6_000) for number in range(6)]
    at()
    failures: list[BaseException] = []
    over = threading.Event()

    def write(order):
        try:
            library = at()
            for path in order:
                for _ in range(200):
                    try:
                        library.add(path)
                        break
                    except LibraryError:
                        time.sleep(0.02)
                else:
                    raise AssertionError(f"{path} could not be added")
        except BaseException as error:
            failures.append(error)

    def cut():
        while not over.wait(0.15):
            server.cut()

    cutter = threading.Thread(target=cut)
    writers = [threading.Thread(target=write, args=(order,)) for order in (paths, paths[::-1])]
    for thread in (cutter, *writers):
        thread.start()
    for writer in writers:
        writer.join(100)
    over.set()
    cutter.join(10)
    assert failures == []
    library = at()
    assert whole(library, 6)
    assert library._store.generation() == 6


def test_a_batch_waits_for_a_server_that_restarts_and_repeats_nothing(at, server, lamp, tmp_path):
    library = at(*[Reply("The schooner was the Petrel.", word_s=0.01)] * 200)
    library.add(lamp)
    source = tmp_path / "q.jsonl"
    source.write_text('{"question": "Which ship struck the reef?"}\n' * 20, encoding="utf-8")
    back = threading.Thread(target=lambda: (time.sleep(1), server.start()))
    waited = done = 0
    with Journal(tmp_path / "a.jsonl") as journal:
        runner = Runner(library, journal, waits_s=(0.1,) * 100)
        for event in runner.run(questions(source)):
            waited += isinstance(event, Waiting)
            done += isinstance(event, RowDone)
            if done == 4 and back.ident is None:
                server.stop()
                back.start()
        back.join()
        rows = [row["row"] for row in journal.rows()]
        assert journal.status.count("ok") == 20
    assert waited
    assert sorted(rows) == list(range(20))
