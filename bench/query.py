"""How long a search takes as a library grows, what it holds in memory, and what it misses.

    python bench/query.py [--sizes 1000,10000,100000,1000000] [--eval ../shared/eval]

Libraries are made up, of documents of 500 chunks. Vectors: those of 1,500 real chunks, each blurred
with noise of the real ones' covariance, so that they lie in clouds as real ones do. Words: 170 a
chunk, drawn by their frequency in real texts. Queries: 200 real questions of the evaluation sets.
``recall`` is that of the dense index against exact search, over these very vectors.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import platformdirs
import psutil

from memory.document import Span
from retrieval.onnx_embedder import OnnxEmbedder
from retrieval.query import core
from retrieval.searcher import Searcher

ROOT = Path(__file__).resolve().parent.parent
PER_DOCUMENT = 500
QUERIES = 200


class MadeUpShelf:
    """A shelf whose documents are worked out from their numbers whenever they are asked for."""

    def __init__(self, num_chunks: int, cloud, words, counts) -> None:
        self.sizes = [
            min(PER_DOCUMENT, num_chunks - start) for start in range(0, num_chunks, PER_DOCUMENT)
        ]
        self.cloud = cloud
        covariance = np.cov(cloud.T) + 1e-6 * np.eye(cloud.shape[1])
        self.blur = np.linalg.cholesky(covariance).T.astype(np.float32)
        self.words, self.up_to = words, np.cumsum(counts / counts.sum())

    def generation(self) -> int:
        """Never moves."""
        return 1

    def document_ids(self) -> set[str]:
        """Numbers from 0 on."""
        return {str(number) for number in range(len(self.sizes))}

    def first_chunks(self) -> dict[str, int]:
        """See ``chunk_ids``."""
        return {str(number): number * PER_DOCUMENT for number in range(len(self.sizes))}

    def chunk_ids(self, document_id: str):
        """Numbers from 0 on through all documents."""
        first = int(document_id) * PER_DOCUMENT
        return np.arange(first, first + self.sizes[int(document_id)], dtype=np.int64)

    def vectors(self, document_id: str, embedder: str):
        """Real vectors, blurred."""
        rng, count = np.random.default_rng(int(document_id)), self.sizes[int(document_id)]
        noise = rng.standard_normal((count, self.cloud.shape[1]), dtype=np.float32) @ self.blur
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = 0.75 * self.cloud[rng.integers(0, len(self.cloud), count)] + 0.66 * noise
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def chunk_texts(self, document_id: str) -> list[tuple[str, str]]:
        """Words drawn by their frequency."""
        rng, count = np.random.default_rng(int(document_id)), self.sizes[int(document_id)]
        drawn = np.searchsorted(self.up_to, rng.random((count, 170)))
        return [
            ("", " ".join(self.words[w] for w in row))
            for row in np.minimum(drawn, len(self.words) - 1)
        ]

    def places(self, chunk_ids) -> dict[int, tuple[str, Span]]:
        """Each chunk takes 700 characters."""
        return {
            each: (
                str(each // PER_DOCUMENT),
                Span(each % PER_DOCUMENT * 700, each % PER_DOCUMENT * 700 + 700),
            )
            for each in chunk_ids
        }


class Remembering:
    """The real embedder, which answers at once for queries that it has had."""

    def __init__(self, embedder: OnnxEmbedder, queries: list[str]) -> None:
        self.name, self.dim, self.embed = embedder.name, embedder.dim, embedder.embed
        self.known = {q: embedder.embed_query(q) for query in queries for q in (query, core(query))}

    def embed_query(self, query: str):
        """The remembered vector."""
        return self.known[query]


def open_embedder() -> OnnxEmbedder:
    models = platformdirs.user_cache_path("gistree") / "models"
    return OnnxEmbedder(
        models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2/tokenizer.json", "minilm"
    )


def prepare(texts: Path, file: Path) -> None:
    """Chunks' vectors, word frequencies and questions, for all sizes."""
    rng = np.random.default_rng(7)
    chunks, questions, every = [], [], []
    for name in ("needles", "leval_cuad", "hotpotqa", "qmsum_val", "fairytaleqa_val", "litqa2"):
        for line in (texts / f"{name}.jsonl").open():
            document = json.loads(line)
            words = document["text"].split()
            every += words
            chunks += [" ".join(words[at : at + 170]) for at in range(0, len(words) - 85, 170)]
            questions += [q["question"] for q in document["questions"]]
    chosen = [chunks[place] for place in rng.permutation(len(chunks))[:1500]]
    asked = [questions[place] for place in rng.permutation(len(questions))[:QUERIES]]
    words, counts = np.unique(every, return_counts=True)
    np.savez(file, cloud=open_embedder().embed(chosen), words=words, counts=counts, asked=asked)


def timed(action, items) -> dict[str, float]:
    """Wall-clock percentiles, and CPU time, which tells more where the machine is busy."""
    wall, cpu = [], []
    for item in items:
        start, used = time.perf_counter(), time.process_time()
        action(item)
        wall.append(1000 * (time.perf_counter() - start))
        cpu.append(1000 * (time.process_time() - used))
    return {
        "p50_ms": round(float(np.percentile(wall, 50)), 2),
        "p95_ms": round(float(np.percentile(wall, 95)), 2),
        "cpu_p50_ms": round(float(np.percentile(cpu, 50)), 2),
        "cpu_p95_ms": round(float(np.percentile(cpu, 95)), 2),
    }


def exact(shelf: MadeUpShelf, queries, top_k: int):
    """The true nearest chunks of each query, [num_queries, top_k]."""
    scores = np.full((len(queries), top_k), -2.0, np.float32)
    best = np.zeros((len(queries), top_k), np.int64)
    for document_id in map(str, range(len(shelf.sizes))):
        new = queries @ shelf.vectors(document_id, "").T
        ids = np.broadcast_to(shelf.chunk_ids(document_id), new.shape)
        scores, best = np.hstack([scores, new]), np.hstack([best, ids])
        order = np.argpartition(-scores, top_k, axis=1)[:, :top_k]
        scores = np.take_along_axis(scores, order, 1)
        best = np.take_along_axis(best, order, 1)
    return best


def measure(num_chunks: int, file: Path) -> dict:
    """All figures of one size; run in a process of its own."""
    data = np.load(file)
    words, asked = data["words"].tolist(), data["asked"].tolist()
    shelf = MadeUpShelf(num_chunks, data["cloud"], words, data["counts"])
    embedder = open_embedder()
    known = Remembering(embedder, asked)
    process = psutil.Process()
    before = process.memory_info().rss
    with tempfile.TemporaryDirectory() as scratch:
        searcher = Searcher(shelf, known, Path(scratch))
        start = time.perf_counter()
        searcher.sync()
        built = time.perf_counter() - start
        start = time.perf_counter()
        for document_id in shelf.document_ids():
            shelf.vectors(document_id, "")
            shelf.chunk_texts(document_id)
        made_up = time.perf_counter() - start
        searcher.search(asked[0])
        resident = process.memory_info().rss
        result = {
            "chunks": num_chunks,
            "kind": searcher._vectors.kind,
            "search": timed(searcher.search, asked),
            "one_document": timed(lambda query: searcher.search(query, documents=["1"]), asked),
            "dense": timed(lambda query: searcher._vectors.search(known.known[query], 50), asked),
            "words": timed(lambda query: searcher._words.search(query, 50), asked),
            "embed_query": timed(embedder.embed_query, asked),
            "build_s": round(built - made_up, 1),
            "resident_mb": round(resident / 1e6),
            "index_mb_in_memory": round((resident - before) / 1e6),
        }
        searcher._embedder = embedder
        result["search_with_embedding"] = timed(searcher.search, asked)
        queries = np.stack([known.known[query] for query in asked])
        truth = exact(shelf, queries, 10)
        found = searcher._vectors._index.search(queries, 10)[1]
        shared = [len(set(a) & set(b)) for a, b in zip(found, truth, strict=True)]
        result["recall_at_10"] = round(float(np.mean(shared)) / 10, 4)
        start = time.perf_counter()
        searcher.close()
        result["save_s"] = round(time.perf_counter() - start, 2)
        files = [each for each in Path(scratch).rglob("*") if each.is_file()]
        result["disk_mb"] = round(sum(each.stat().st_size for each in files) / 1e6)
        start = time.perf_counter()
        searcher = Searcher(shelf, known, Path(scratch))
        searcher.search(asked[0])
        result["open_s"] = round(time.perf_counter() - start, 2)
        searcher.close()
    return result


def show(result: dict) -> None:
    def line(name: str) -> str:
        times = result[name]
        return (
            f"{times['p50_ms']:7.1f} /{times['p95_ms']:7.1f} ms"
            f" (CPU {times['cpu_p50_ms']:6.1f} /{times['cpu_p95_ms']:6.1f})"
        )

    print(
        f"{result['chunks']:,} chunks, {result['kind']}: recall@10 {result['recall_at_10']}, "
        f"{result['resident_mb']} MB resident, built in {result['build_s']} s, opened in "
        f"{result['open_s']} s, {result['disk_mb']} MB on disk; p50 / p95:"
    )
    for name in ("search_with_embedding", "search", "one_document", "dense", "words"):
        print(f"  {name:22}{line(name)}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="1000,10000,100000,1000000")
    options.add_argument("--eval", type=Path, default=ROOT / "../shared/eval")
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.data)))
        return
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        data = given.data or Path(scratch) / "data.npz"
        if not data.exists():
            prepare(given.eval, data)
        for size in given.sizes.split(","):
            done = subprocess.run(
                [sys.executable, __file__, "--one", size, "--data", str(data)],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            results.append(json.loads(done.stdout))
            show(results[-1])
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "load": os.getloadavg()}
    out = ROOT / "bench" / "results" / f"query-{date.today()}.json"
    out.write_text(json.dumps({"machine": machine, "sizes": results}, indent=1) + "\n")
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
