"""What documents cost as a library grows: taking in, disk, and asking, from 10 to 10,000.

    python bench/scale.py [--most 1000] [--work FOLDER] [--eval ../shared/eval]

Documents are slices of 185 words, none twice, of the English texts of the evaluation sets; a few
words head each. They are added one after the other to one library with the real embedder, in
processes of their own; a step's figures are those of the documents that it added. Then, in a
process of its own each, 200 real questions are searched for: in the library as it is ("memory"),
and in a copy whose vectors have moved to the disk because memory may hold only a quarter of them
("disk"). Recall is that of the ten nearest vectors, against comparing all that are in the database.

With ``--work`` the library and what was measured are kept there: the same command goes on where it
was ended, also with a larger ``--most``.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from query import timed  # noqa: E402

from app.library import Library  # noqa: E402
from app.settings import Settings  # noqa: E402
from retrieval import layered_index  # noqa: E402
from retrieval.query import core  # noqa: E402

STEPS = (10, 100, 1_000, 10_000)
WORDS = 185
AT_ONCE = 250  # documents that one process adds
QUESTIONS = 200


def opened(folder: Path, **settings) -> Library:
    return Library(folder, settings=Settings(library=str(folder), **settings))


def make_files(folder: Path, eval_folder: Path, most: int) -> None:
    """The documents, numbered, and the questions."""
    slices, questions, seen = [], [], set()
    for file in sorted(eval_folder.glob("*.jsonl")):
        if re.match(r"xquad_(?!en)", file.name):
            continue
        for line in file.open(encoding="utf-8"):
            document = json.loads(line)
            if document["text"][:300] in seen:
                continue
            seen.add(document["text"][:300])
            words = document["text"].split(" ")
            slices += [
                " ".join(words[at : at + WORDS]) for at in range(0, len(words) - WORDS, WORDS)
            ]
            questions += [each["question"] for each in document["questions"]]
    if len(slices) < most:
        raise SystemExit(f"the texts in {eval_folder} give {len(slices):,} documents, not {most:,}")
    rng = np.random.default_rng(11)
    folder.mkdir(parents=True)
    for number, place in enumerate(rng.permutation(len(slices))[:most].tolist()):
        text = f"Document {number}\n\n{slices[place]}\n"
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
    chosen = [questions[place] for place in rng.permutation(len(questions))[:QUESTIONS].tolist()]
    (folder / "questions.json").write_text(json.dumps(chosen), encoding="utf-8")


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def used() -> float:
    """Processor seconds of this process and of those it has waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def add(work: Path, first: int, past: int) -> dict:
    """Adds some documents; what a killed run had added of them goes first."""
    with opened(work / "library") as library:
        library.finish_interrupted()
        for entry in library.list():
            if first <= int(Path(entry.name).stem):
                library.delete(entry.name)
        library.embedder.embed(["the model is loaded"])
        begun, before = time.perf_counter(), used()
        for number in range(first, past):
            library.add(work / "files" / f"{number:05}.txt")
        seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "first": first,
        "past": past,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used() - before, 2),
        "peak_mb": round(peak / 1e3),
    }


def ask(work: Path, arm: str) -> dict:
    """Searches, in the library or in a copy of it that must keep its vectors on the disk."""
    questions = json.loads((work / "files" / "questions.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        folder, settings = work / "library", {}
        if arm == "disk":
            folder = shutil.copytree(folder, Path(scratch) / "library")
            with opened(folder) as library:
                library.search(questions[0])
                vectors = len(library._searcher._vectors)
            settings["vectors_in_memory"] = max(1, vectors // 4)
            layered_index.FLAT_MOST = 1
        with opened(folder, **settings) as library:
            begun = time.perf_counter()
            library.search(questions[0])
            first = time.perf_counter() - begun
            vectors = library._searcher._vectors
            vectors.settle()
            vectors.sync(library._store)
            vectors.settle()
        with opened(folder, **settings) as library:
            times = timed(library.search, questions)
            vectors = library._searcher._vectors
            return {
                "kind": vectors.kind,
                "vectors": len(vectors),
                "first_search_s": round(first, 2),
                **times,
                "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
                "recall_at_10": recall(library, questions),
                "disk_bytes": size(folder),
            }


def recall(library: Library, questions: list[str]) -> float:
    """Share of the ten nearest by the vectors in the database that the index finds."""
    store, name = library._store, library.embedder.name
    documents = sorted(store.document_ids())
    ids = np.concatenate([store.chunk_ids(each) for each in documents])
    every = np.concatenate([store.vectors(each, name) for each in documents])
    shares = []
    for question in questions:
        query = library.embedder.embed_query(core(question))
        best = set(ids[np.argsort(-(every @ query))[:10]].tolist())
        found = {number for number, _ in library._searcher._vectors.search(query, 10)}
        shares.append(len(best & found) / len(best))
    return round(float(np.mean(shares)), 4)


def phase(*words: str) -> dict:
    """Something in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def kept(file: Path) -> list[dict]:
    """Whole lines of what was measured."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def keep(file: Path, rows: list[dict]) -> None:
    draft = file.with_suffix(".part")
    draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    draft.replace(file)


def step(work: Path, past: int) -> dict:
    """Adds up to so many documents and asks; takes over what an ended run has measured."""
    first = max((each for each in STEPS if each < past), default=0)
    file = work / "added.jsonl"
    parts = kept(file)
    while (at := parts[-1]["past"] if parts else 0) < past:
        upto = min(at + AT_ONCE, past)
        parts.append(phase("--work", str(work), "--add", str(at), str(upto)))
        keep(file, parts)
        print(parts[-1], flush=True)
    mine = [part for part in parts if first <= part["first"] < past]
    number = past - first
    asked = {arm: phase("--work", str(work), "--ask", arm) for arm in ("memory", "disk")}
    disk = size(work / "library")
    return {
        "documents": past,
        "seconds_per_document": round(sum(each["seconds"] for each in mine) / number, 4),
        "cpu_seconds_per_document": round(sum(each["cpu_seconds"] for each in mine) / number, 4),
        "peak_mb_adding": max(each["peak_mb"] for each in mine),
        "disk_bytes_per_document": round(disk / past),
        "asked": asked,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--most", type=int, default=1_000, choices=STEPS)
    options.add_argument("--work", type=Path, help="folder that keeps all, to go on later")
    options.add_argument("--eval", type=Path, default=ROOT / "../shared/eval")
    options.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options.add_argument("--add", type=int, nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--ask", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.add or given.ask:
        print(json.dumps(add(given.work, *given.add) if given.add else ask(given.work, given.ask)))
        return
    with tempfile.TemporaryDirectory(prefix="gistree-scale-") as scratch:
        work = given.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "files" / "questions.json").exists():
            shutil.rmtree(work / "files", ignore_errors=True)
            make_files(work / "files", given.eval, STEPS[-1])
        rows = kept(work / "steps.jsonl")
        for past in STEPS:
            if past <= given.most and past not in [row["documents"] for row in rows]:
                rows.append(step(work, past))
                keep(work / "steps.jsonl", rows)
                print(json.dumps(rows[-1], indent=1), flush=True)
    report = {
        "command": f"python bench/scale.py --most {given.most} --work FOLDER",
        "words_per_document": WORDS,
        "cores": os.cpu_count(),
        "steps": [row for row in rows if row["documents"] <= given.most],
    }
    file = given.out / f"scale-{date.today()}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
