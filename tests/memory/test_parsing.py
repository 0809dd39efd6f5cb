import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import fake_parsers
import psutil
import pytest

from memory.document import Problem
from memory.errors import (
    DocumentNotFound,
    DocumentTooLarge,
    PasswordNeeded,
    UnreadableDocument,
    UnsupportedFormat,
)
from memory.parsing import Limits, read_document
from serving import plugins
from serving.errors import MissingExtra, UnknownName

LINUX = sys.platform == "linux"


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads a file with a fake parser, which is an outside plug-in."""
    info = tmp_path / "site" / "fake_parsers-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake_parsers\nVersion: 1\n")
    entries = [f"{name} = fake_parsers:{name}" for name in vars(fake_parsers) if name[0].isupper()]
    (info / "entry_points.txt").write_text("\n".join(["[gistree.memory.parsers]", *entries]))
    monkeypatch.syspath_prepend(info.parent)
    plugins.names.cache_clear()
    file = tmp_path / "ab12.fake"
    file.write_bytes(b"fake")

    def read_one(parser, *, name="tale.fake", **options):
        return read_document(file, name=name, parser=parser, **options)

    yield read_one
    plugins.names.cache_clear()


def test_a_document_comes_whole(read):
    seen = []
    document = read("Good", password="s\u00e9same", on_progress=seen.append)
    assert document.text == "The first page.\n\nThe second page.\n\nIts password is s\u00e9same"
    assert [page.label for page in document.pages] == ["i", "ii"]
    assert document.pages[1].source == "ocr"
    assert [section.title for section in document.sections] == ["All of it"]
    assert document.problems == (Problem("'tale.fake' has a stain", "clean it", 1),)
    assert document.id == "b5d54c39e66671c9731b9f471e585d8262cd4f54963f0c93082d8dcf334d4c78"
    assert (document.name, document.size_bytes) == ("tale.fake", 4)
    assert [(p.pages_done, p.pages_total, p.what) for p in seen] == [
        (0, 2, "text"),
        (1, 2, "ocr"),
        (2, 2, "text"),
    ]


def test_a_crash_says_what_happened(read):
    with pytest.raises(UnreadableDocument, match=r"'tale.fake'.*crashed.*segmentation fault"):
        read("CrashAtOnce")


@pytest.mark.parametrize("parser", ["CrashOnPage3", "CrashInPage3"])
def test_pages_before_a_crash_are_kept_and_the_rest_named(read, parser):
    document = read(parser)
    assert document.text == "The first page.\n\nThe second page."
    assert [page.source for page in document.pages] == ["text", "ocr", "unread", "unread"]
    assert document.pages_read == 2
    assert document.problems[0].page == 2
    assert "crashed" in document.problems[0].what


def test_a_document_without_pages_that_crashes_does_not_count_as_read(read):
    document = read("CrashInTheOnlyPage")
    assert document.text == "The beginning."
    assert document.pages_read == 0
    assert document.problems[0].page == 0


def test_a_fault_of_a_parser_keeps_what_came(read):
    document = read("FailOnPage3")
    assert document.pages_read == 2
    assert "KeyError: 'Pages'" in document.problems[0].what


def test_a_parser_may_refuse_whatever_came_before(read):
    with pytest.raises(PasswordNeeded, match=r"^'tale\.fake' needs a password$"):
        read("Refuse")


def test_a_missing_extra_keeps_its_name(read):
    with pytest.raises(MissingExtra, match=r"pip install 'gistree\[llama-index\]'") as caught:
        read("NeedExtra")
    assert caught.value.extra == "llama-index"


def test_a_parser_without_progress_is_ended(read):
    document = read("Hang", limits=Limits(stall_s=0.5))
    assert document.pages_read == 2
    assert "no progress for 0.5 seconds" in document.problems[0].what


def test_a_parser_that_shows_signs_of_life_is_not_stalled(read):
    seen = []
    document = read("Slow", limits=Limits(stall_s=1.1), on_progress=seen.append)
    assert document.pages_read == 2
    assert [(p.pages_done, p.what) for p in seen] == [(0, "ocr"), (1, "ocr"), (2, "text")]


def test_a_parser_that_the_system_kills_ran_out_of_memory(read):
    assert "memory ran out" in read("KilledByTheSystem").problems[0].what


def test_a_worker_that_closes_its_pipe_is_not_waited_for(read, monkeypatch):
    monkeypatch.setattr("memory.parse_process._LAST_BREATH_S", 0.3)
    assert read("Deaf").pages_read == 2


def test_there_may_be_a_limit_on_time_in_all(read):
    document = read("Hang", limits=Limits(total_s=1))
    assert "more than 1 seconds" in document.problems[0].what


def test_a_slow_listener_is_not_taken_for_a_stalled_parser(read):
    document = read("Good", limits=Limits(stall_s=0.4), on_progress=lambda _: time.sleep(0.6))
    assert document.pages_read == 2


@pytest.mark.parametrize(
    "parser",
    [
        "Eat",
        pytest.param(
            "EatAtOnce",
            marks=pytest.mark.skipif(not LINUX, reason="only Linux bounds the data of a process"),
        ),
    ],
)
def test_a_parser_that_eats_memory_is_ended(read, parser):
    document = read(parser, limits=Limits(memory_bytes=200 * 2**20))
    assert document.pages_read == 2
    assert "more than 0.2 GB of memory" in document.problems[0].what


def test_pages_have_a_limit(read):
    with pytest.raises(DocumentTooLarge, match="more than 1,000 pages"):
        read("PagesForEver", limits=Limits(num_pages=1000))


def test_text_has_a_limit(read):
    document = read("TextForEver", limits=Limits(output_bytes=10**6))
    assert len(document.text) < 10**6
    assert "1,000,000 bytes of text" in document.problems[0].what
    assert document.pages_read == 0


def test_what_libraries_print_is_no_part_of_the_document(read):
    assert read("Chatter").text == "The first page.\n\nThe second page."


def test_a_worker_that_a_file_owns_can_only_send_text(read):
    document = read("Garble")
    assert document.text == "The first page.\n\nThe second page."
    assert "sent what is no text" in document.problems[0].what


def test_no_surrogate_nul_or_carriage_return_survives(read):
    document = read("Surrogates")
    assert document.text == "a?bc\nd \u00e9"
    assert document.title == "T?itle"
    assert document.pages[0].label == "iv"


def test_a_parser_reaches_nothing_but_its_folder(read, tmp_path, monkeypatch):
    monkeypatch.setenv("GISTREE_API_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        lines = dict(
            line.split(": ", 1) for line in read("Mischief", password=str(port)).text.split("\n\n")
        )
    folder = Path(lines.pop("folder"))
    interfaces = lines.pop("interfaces")
    assert lines.pop("own folder") == lines.pop("temporary") == "done"
    assert lines.pop("secret") == "None"
    assert set(lines.values()) == {"refused"}
    assert {file.name for file in tmp_path.iterdir()} == {"site", "ab12.fake"}
    assert not folder.exists()
    if LINUX and os.geteuid() == 0:
        assert interfaces == "lo"


def test_an_unknown_parser_lists_the_known_ones(read):
    with pytest.raises(UnknownName, match=r"no parser is named 'nope'; known: .*epub"):
        read("nope")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(DocumentNotFound, match="no-such-file"):
        read_document(tmp_path / "no-such-file.txt")
    with pytest.raises(UnsupportedFormat, match="is a folder"):
        read_document(tmp_path)


def test_nothing_is_left_running_when_the_listener_fails(read):
    def fail(progress):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        read("Hang", on_progress=fail)
    assert psutil.Process().children() == []


PARENT = """
import sys
sys.path[:] = {path!r}
from pathlib import Path
from memory.parsing import read_document
read_document(Path({file!r}), parser="Hang", on_progress=lambda p: print(p, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_worker_goes_when_its_parent_goes(read, tmp_path, how):
    code = PARENT.format(path=sys.path, file=str(tmp_path / "ab12.fake"))
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with parent:
        parent.stdout.readline()
        children = psutil.Process(parent.pid).children()
        assert len(children) == 1
        parent.send_signal(how)
        assert psutil.wait_procs(children, timeout=5)[1] == []
