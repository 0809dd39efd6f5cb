"""What a vector index of a million passages takes: in memory alone, and on the disk.

    python bench/large_index.py --arm memory,disk [--vectors 1000000] [--eval ../shared/eval]

Vectors and queries are those of ``bench/query.py``: real chunks' vectors, blurred, and 200 real
questions. Each arm builds the index in one process (its peak of memory is told) and searches it in
a second one, for the ten nearest. ``resident_mb`` is what that one holds after its searches, and
``anonymous_mb`` what the system cannot take back of it; ``started_mb`` is what it held with all
libraries loaded and no index. With ``--data`` the index is kept beside that file, and the same
command goes on where it was ended.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import faiss  # noqa: F401  (loaded before memory is looked at)
import numpy as np
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from query import MadeUpShelf, exact, open_embedder, prepare, timed  # noqa: E402

from retrieval.layered_index import MEMORY_MOST  # noqa: E402
from retrieval.query import core  # noqa: E402
from retrieval.vector_index import VectorIndex  # noqa: E402


def opened(folder: Path, arm: str, dim: int) -> VectorIndex:
    most = MEMORY_MOST if arm == "disk" else sys.maxsize
    return VectorIndex(folder, embedder="minilm", dim=dim, memory_most=most)


def shelf_of(data: Path, num_vectors: int) -> MadeUpShelf:
    made = np.load(data)
    return MadeUpShelf(num_vectors, made["cloud"], made["words"].tolist(), made["counts"])


def build(folder: Path, arm: str, shelf: MadeUpShelf) -> dict:
    """Fills the index and saves it."""
    start = time.perf_counter()
    index = opened(folder, arm, shelf.cloud.shape[1])
    index.sync(shelf)
    synced = time.perf_counter() - start
    index.settle()
    index.sync(shelf)
    index.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return {
        "in_step_s": round(synced, 1),
        "settled_s": round(time.perf_counter() - start, 1),
        "peak_mb": round(peak),
        "disk_mb": round(size / 1e6),
    }


def search(folder: Path, arm: str, shelf: MadeUpShelf, queries: np.ndarray) -> dict:
    """Opens the index and searches it."""
    process = psutil.Process()
    before = process.memory_info().rss
    start = time.perf_counter()
    index = opened(folder, arm, queries.shape[1])
    opening = time.perf_counter() - start
    index.search(queries[0], 10)
    times = timed(lambda query: index.search(query, 10), queries)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    resident = process.memory_info().rss
    few = timed(lambda query: index.search(query, 10, documents=["1", "7"]), queries)
    found = [{number for number, _ in index.search(query, 10)} for query in queries]
    truth = exact(shelf, queries, 10)
    shared = [len(own & set(row)) for own, row in zip(found, truth.tolist(), strict=True)]
    return {
        "kind": index.kind,
        "open_s": round(opening, 2),
        "search": times,
        "two_documents": few,
        "recall_at_10": round(float(np.mean(shared)) / 10, 4),
        "started_mb": round(before / 1e6),
        "resident_mb": round(resident / 1e6),
        "anonymous_mb": round(int(anonymous.split()[1]) / 1e3),
    }


def phase(name: str, folder: Path, arm: str, data: Path, num_vectors: int) -> dict:
    """One of the two, in a process of its own."""
    given = {"phase": name, "folder": folder, "arm": arm, "data": data, "vectors": num_vectors}
    words = [word for key, value in given.items() for word in (f"--{key}", str(value))]
    done = subprocess.run(
        [sys.executable, __file__, *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arm", default="memory,disk")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--eval", type=Path, default=ROOT / "../shared/eval")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--data", type=Path, help="file to keep real vectors in; made if missing")
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.phase:
        shelf = shelf_of(given.data, given.vectors)
        if given.phase == "build":
            result = build(given.folder, given.arm, shelf)
        else:
            embedder, asked = open_embedder(), np.load(given.data)["asked"].tolist()
            queries = np.stack([embedder.embed_query(core(query)) for query in asked])
            result = search(given.folder, given.arm, shelf, queries)
        print(json.dumps(result))
        return
    file = given.out / f"large-index-{date.today()}.json"
    report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"arms": {}}
    with tempfile.TemporaryDirectory() as scratch:
        data = given.data or Path(scratch) / "data.npz"
        if not data.exists():
            prepare(given.eval, data)
        for arm in given.arm.split(","):
            folder = data.parent / f"index-{arm}-{given.vectors}"
            done = folder / "built.json"
            if not done.exists():
                built = phase("build", folder, arm, data, given.vectors)
                done.write_text(json.dumps(built), encoding="utf-8")
            built = json.loads(done.read_text(encoding="utf-8"))
            searched = phase("search", folder, arm, data, given.vectors)
            report["arms"][f"{arm}, {given.vectors:,}"] = {"build": built, **searched}
            print(arm, json.dumps(report["arms"][f"{arm}, {given.vectors:,}"], indent=1))
            options = f"--arm {given.arm} --vectors {given.vectors}"
            report["command"] = f"python bench/large_index.py {options}"
            report["machine"] = {"cores": os.cpu_count(), "vectors_in_memory": MEMORY_MOST}
            file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
