"""Kills what adds, deletes and answers at random moments, and looks for anything lost or doubled.

    python bench/crash.py [--kills 200] [--seed 1]

A process adds documents, deletes some and runs a batch, in turn, over one library, until it is
killed. After each kill the library is opened, ``gistree check`` looks it over, and everything that
the process had said it finished must be there, once: documents that were added and not deleted,
rows of the answer file. Then the next process goes on where the last one was ended. The model says
one thing and the embedder hashes words, so that a kill falls between writes and not into a model.
The vector index goes over to cells at a few documents here, and to the disk at some more, and every
third turn deletes all, so that cells are learnt, vectors moved, both dropped and saved again and
again, as else only large libraries do. Every
second time another process adds and deletes documents of its own in the library, and is killed at a
moment of its own. A process that ends by itself counts as a fault.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "retrieval")]

from fakes import HashingEmbedder  # noqa: E402

from app.batch.run import Event, RowDone  # noqa: E402
from app.library import Library  # noqa: E402
from app.settings import Settings  # noqa: E402
from retrieval import layered_index  # noqa: E402
from retrieval.dense_index import DenseIndex  # noqa: E402
from serving.scripted import Reply, ScriptedLLM  # noqa: E402

DOCUMENTS = 8
OTHERS = range(DOCUMENTS, DOCUMENTS + 4)  # documents of the second process
ROWS = 40
ASKED = 1
ANSWER = "The lamp burned in the tower."
FLAT_MOST = 8  # vectors: fewer than the documents have together
IN_MEMORY = 40  # fewer than those of one process, too


def opened(folder: Path) -> Library:
    replies = [Reply(ANSWER, word_s=0.005)] * 4 * ROWS
    return Library(
        folder / "library",
        settings=Settings(
            library=str(folder / "library"), pruner="none", vectors_in_memory=IN_MEMORY
        ),
        model=ScriptedLLM(replies),
        embedder=HashingEmbedder(),
    )


def with_cells_early() -> None:
    """Every index of this process lies in cells past ``FLAT_MOST`` vectors."""
    layered_index.FLAT_MOST = FLAT_MOST
    for method in (DenseIndex.__init__, DenseIndex.read.__func__):
        method.__kwdefaults__["flat_most"] = FLAT_MOST


def say(what: str, which: str) -> None:
    sys.stdout.write(f"{what} {which}\n")
    sys.stdout.flush()


def say_row(out: str, event: Event) -> None:
    if isinstance(event, RowDone):
        say("row", f"{out} {event.row.id}")


def work(folder: Path, turn: int) -> None:
    """Adds all, asks, deletes one in three or all; for ever, with new rows a turn.

    Every other turn adds but the document that is asked about, so that kills find batches too.
    """
    with opened(folder) as library:
        library.finish_interrupted()
        say("ready", "")
        while True:
            for number in range(DOCUMENTS) if turn % 2 else (ASKED,):
                say("adding", f"{number}.txt")
                library.add(folder / f"{number}.txt")
                say("added", f"{number}.txt")
            batch = folder / f"answers-{turn}.jsonl"
            library.batch(
                folder / "questions.jsonl",
                batch,
                documents=[f"{ASKED}.txt"],
                on_event=partial(say_row, batch.name),
            )
            kept = turn % 3
            there = {entry.name for entry in library.list()}
            for number in range(kept + 2, DOCUMENTS, 3) if kept else range(DOCUMENTS):
                if f"{number}.txt" not in there:
                    continue
                say("deleting", f"{number}.txt")
                library.delete(f"{number}.txt")
                say("deleted", f"{number}.txt")
            turn += 1


def index_kind(folder: Path) -> str:
    """The kind of index that lies on the disk, by its manifest."""
    found = sorted((folder / "library").rglob("manifest.json"))
    return json.loads(found[0].read_text(encoding="utf-8"))["kind"] if found else "none"


def work_beside(folder: Path) -> None:
    """Adds and deletes the second process's documents, for ever."""
    with opened(folder) as library:
        library.finish_interrupted()
        say("ready", "")
        while True:
            for number in OTHERS:
                say("adding", f"{number}.txt")
                library.add(folder / f"{number}.txt")
                say("added", f"{number}.txt")
            for number in OTHERS:
                say("deleting", f"{number}.txt")
                library.delete(f"{number}.txt")
                say("deleted", f"{number}.txt")


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process at work, past its start."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--work", str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    first = process.stdout.readline()
    if first.strip() != "ready":
        raise SystemExit(f"the library could not be opened: got {first!r}, see above")
    return process


def killed(process: subprocess.Popen[str]) -> tuple[list[str], int]:
    """What a process had said when it was killed, and its exit code."""
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()
    return said, process.returncode


def look(folder: Path, said: list[str], held: dict[str, bool | None]) -> list[str]:
    """What is not as it should be after a kill; ``held`` is what is known of each document."""
    rows: Counter[tuple[str, str]] = Counter()
    for line in said:
        what, _, which = line.partition(" ")
        if what in ("added", "deleted"):
            held[which] = what == "added"
        elif what == "deleting" or (what == "adding" and not held.get(which)):
            held[which] = None  # killed within it: either is right
        elif what == "row":
            rows[tuple(which.split())] += 1
    wrong = [f"said twice: {row}" for row, times in rows.items() if times > 1]
    with opened(folder) as library:
        names = Counter(entry.name for entry in library.list())
        wrong += [f"doubled: {name}" for name, times in names.items() if times > 1]
        wrong += [f"lost: {n}" for n, there in held.items() if there and n not in names]
        wrong += [f"came back: {n}" for n, there in held.items() if there is False and n in names]
        library.finish_interrupted()
        wrong += [f"{flaw.kind}: {flaw.what}" for flaw in library.check()]
        for entry in library.list():
            held[entry.name] = True
    for out in folder.glob("answers-*.jsonl"):
        lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = Counter(json.loads(line)["id"] for line in lines if line.endswith("\n"))
        wrong += [f"row {i} of {out.name} stands {n} times" for i, n in kept.items() if n > 1]
        wrong += [f"row {i} of {f} is lost" for f, i in rows if f == out.name and i not in kept]
    return wrong


def matrix(folder: Path, *, kills: int, seed: int) -> dict:
    """Kills so often; returns what was counted and what was wrong."""
    rng = random.Random(seed)
    words = ["lamp", "reef", "storm", "tower", "oil", "sailor", "well", "burned", "schooner"]
    for number in range(OTHERS.stop):
        text = "\n\n".join(" ".join(rng.choices(words, k=60)) for _ in range(30))
        (folder / f"{number}.txt").write_text(f"Tale {number}\n\n{ANSWER}\n\n{text}")
    rows = ({"id": f"q{n}", "question": f"Where did the lamp burn, {n}?"} for n in range(ROWS))
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    held: dict[str, bool | None] = {}
    fell: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    num_killed = 0
    wrong: list[str] = []
    for number in range(kills):
        turn = max((int(p.stem.split("-")[1]) for p in folder.glob("answers-*.jsonl")), default=0)
        processes = [started(folder, "--turn", str(turn))]
        if number % 2:
            processes.append(started(folder, "--beside"))
            rng.shuffle(processes)
        said: list[str] = []
        for process in processes:
            time.sleep(rng.uniform(0.0, 2.0 / len(processes)))
            lines, code = killed(process)
            said += lines
            fell[lines[-1].partition(" ")[0] if lines else "nothing"] += 1
            num_killed += 1
            if code != -signal.SIGKILL:
                wrong.append(f"kill {number}: a process had ended by itself with code {code}")
        kinds[index_kind(folder)] += 1
        last = ", ".join(said[-3:])
        wrong += [f"kill {number}, after {last}: {what}" for what in look(folder, said, held)]
    return {
        "rounds": kills,
        "kills": num_killed,
        "seed": seed,
        "last_said_before": dict(fell),
        "index_file_after": dict(kinds),
        "wrong": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--kills", type=int, default=200, help="moments; two processes die at each second"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--turn", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with_cells_early()
    if options.beside:
        work_beside(options.work)
    elif options.work:
        work(options.work, options.turn)
    if options.work:
        return
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gistree-crash-") as folder:
        report = matrix(Path(folder), kills=options.kills, seed=options.seed)
    report["minutes"] = round((time.monotonic() - started) / 60, 1)
    print(json.dumps(report, indent=1))
    command = f"python bench/crash.py --kills {options.kills} --seed {options.seed}"
    file = options.out / f"crash-{date.today()}.json"
    file.write_text(json.dumps({"command": command, **report}, indent=1) + "\n", encoding="utf-8")
    if report["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
