"""Ingest: how fast files become searchable, and what memory that takes, beside two peers.

    python bench/ingest.py compare --runs 3     gistree, LlamaIndex and LangChain on the same files
    python bench/ingest.py growth               gistree over 1, 10 and 100 books
    python bench/ingest.py memory FILE...       gistree's peak memory on large files

The peers are in bench/requirements.txt. Every run is a process of its own and goes from the file to
the first answered search: read, chunk, embed, index. Imports and the loading of the embedding model
come before the clock starts. Peak memory is the resident memory of the whole process tree, looked
at 20 times a second. All embed with all-MiniLM-L6-v2: the peers as they usually do (torch, float32)
and, as "+ ONNX", with gistree's own embedder, which compares the rest. Runs of the systems take
turns, and ratios are taken within a turn, so that a busy machine is busy for all.

Two things to know of the peers' defaults. LlamaIndex makes chunks of 1,024 tokens, and in torch the
model sees the first 256 of them: it embeds less than a third of a text (``embedded_share``). With
its chunks set to 256 tokens ("llama-index 256") most is embedded; gistree embeds all.
LangChain's chunks overlap by 200 of 1,000 characters: it embeds a fifth more than there is.
gistree keeps all on the disk (file, text, vectors, both indexes); the peers keep it in memory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from datetime import date
from pathlib import Path

import numpy as np
import platformdirs
import psutil

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "../shared/docs/good"
MODELS = platformdirs.user_cache_path("gistree") / "models"
FOLDER = MODELS / "minilm-l6-v2"
FILES = ("policy-controlfields.docx", "wasteland.epub", "fhs-3.0.pdf")
SYSTEMS = (
    "gistree",
    "llama-index",
    "llama-index 256",
    "langchain",
    "llama-index + ONNX",
    "langchain + ONNX",
)
QUERY = "What is said of the beginning?"
WORDS_A_PAGE = 300  # where a format has no pages


class HashingEmbedder:
    """Vectors that cost next to nothing; tokens are counted as the real embedder does."""

    name, dim = "hashing", 384

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts):
        """Rows by the texts' hashes."""
        seeds = (zlib.crc32(text.encode(errors="replace")) for text in texts)
        rows = np.stack([np.random.default_rng(seed).standard_normal(384) for seed in seeds])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def embed_query(self, query):
        """Likewise."""
        return self.embed([query])[0]

    def token_counts(self, texts):
        """By the real tokenizer."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(each.ids) for each in encoded]


def onnx_embedder():
    from app.models import open_embedder
    from app.settings import Settings

    return open_embedder(Settings())


# ---- one run, in a process of its own ------------------------------------------------------------


class Clock:
    """Wall-clock and CPU seconds since it was made, child processes included."""

    def __init__(self) -> None:
        self.start, self.used = time.perf_counter(), self._cpu()

    @staticmethod
    def _cpu() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    def read(self) -> dict[str, float]:
        """Both, since it was made."""
        seconds, cpu = time.perf_counter() - self.start, self._cpu() - self.used
        return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu, 3)}


def run_gistree(files: list[Path], embedder) -> dict:
    import faiss  # noqa: F401  the peers' imports are not timed either
    import tantivy  # noqa: F401

    from app.library import Library

    stages: dict[str, float] = {}
    before = [time.perf_counter(), "copy"]

    def note(stage: str) -> None:
        now = time.perf_counter()
        stages[before[1]] = stages.get(before[1], 0.0) + now - before[0]
        before[:] = now, stage

    with (
        tempfile.TemporaryDirectory() as place,
        Library(place, embedder=embedder) as library,
    ):
        clock = Clock()
        note("copy")
        entries = [library.add(file, on_progress=lambda p: note(p.stage)) for file in files]
        note("index")
        library.search(QUERY)
        note("done")
        done = clock.read()
        tokenizer = HashingEmbedder()
        texts = [library.document(entry.id).text for entry in entries]
        return {
            **done,
            "chunks": sum(len(library._store.chunks(entry.id)) for entry in entries),
            "pages": sum(
                e.num_pages if e.paged else max(1, round(e.num_words / WORDS_A_PAGE))
                for e in entries
            ),
            "words": sum(entry.num_words for entry in entries),
            "tokens": sum(sum(tokenizer.token_counts(text.split("\n"))) for text in texts),
            "read_and_chunk_s": round(stages["copy"] + stages.get("read", 0.0), 3),
            "embed_s": round(stages.get("embed", 0.0), 3),
            "index_s": round(stages["index"], 3),
        }


def share_seen(texts: list[str]) -> float:
    """Share of the chunks' tokens that the model sees where texts are cut at its window."""
    counts = HashingEmbedder().token_counts(texts)
    return round(sum(min(count, 254) for count in counts) / sum(counts), 3)


def run_langchain(files: list[Path], embedder) -> dict:
    from langchain_community.document_loaders import Docx2txtLoader, PyPDFLoader, TextLoader
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import Embeddings
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    class Wrapped(Embeddings):
        def embed_documents(self, texts):
            return embedder.embed(texts).tolist()

        def embed_query(self, text):
            return embedder.embed_query(text).tolist()

    if embedder is None:
        from langchain_huggingface import HuggingFaceEmbeddings

        model = HuggingFaceEmbeddings(model_name=str(FOLDER))
        model.embed_query(QUERY)
    else:
        model = Wrapped()

    def load(file: Path):
        if file.suffix == ".pdf":
            return PyPDFLoader(str(file)).load()
        if file.suffix == ".docx":
            return Docx2txtLoader(str(file)).load()
        if file.suffix == ".txt":
            return TextLoader(str(file), encoding="utf-8").load()
        raise SystemExit(f"LangChain reads no {file.suffix} without Unstructured")

    clock = Clock()
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    chunks = splitter.split_documents([part for file in files for part in load(file)])
    read = clock.read()["seconds"]
    FAISS.from_documents(chunks, model).similarity_search(QUERY)
    done = clock.read()
    return {
        **done,
        "read_and_chunk_s": read,
        "chunks": len(chunks),
        "embedded_share": share_seen([c.page_content for c in chunks]) if embedder is None else 1.0,
    }


def run_llama_index(files: list[Path], embedder, options: dict) -> dict:
    from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SentenceSplitter

    class Wrapped(BaseEmbedding):
        def _get_text_embedding(self, text):
            return embedder.embed([text])[0].tolist()

        def _get_text_embeddings(self, texts):
            return embedder.embed(texts).tolist()

        def _get_query_embedding(self, query):
            return embedder.embed_query(query).tolist()

        async def _aget_query_embedding(self, query):
            return self._get_query_embedding(query)

    if embedder is None:
        from llama_index.embeddings.huggingface import HuggingFaceEmbedding

        model = HuggingFaceEmbedding(model_name=str(FOLDER))
        model.get_query_embedding(QUERY)
    else:
        model = Wrapped()
    splitter = SentenceSplitter(**options)
    clock = Clock()
    parts = SimpleDirectoryReader(input_files=[str(file) for file in files]).load_data()
    nodes = splitter.get_nodes_from_documents(parts)
    read = clock.read()["seconds"]
    index = VectorStoreIndex(nodes, embed_model=model)
    index.as_retriever().retrieve(QUERY)
    done = clock.read()
    texts = [node.get_content("embed") for node in nodes]
    return {
        **done,
        "read_and_chunk_s": read,
        "chunks": len(nodes),
        "embedded_share": share_seen(texts) if embedder is None else 1.0,
    }


def run_one(system: str, files: list[Path], *, hashing: bool) -> dict:
    if system == "gistree":
        return run_gistree(files, HashingEmbedder() if hashing else onnx_embedder())
    embedder = onnx_embedder() if "ONNX" in system else None
    if system.startswith("langchain"):
        return run_langchain(files, embedder)
    smaller = {"chunk_size": 256, "chunk_overlap": 50} if "256" in system else {}
    return run_llama_index(files, embedder, smaller)


def run_growth(files: list[Path], *, hashing: bool) -> list[dict]:
    """One library that grows; marks after 1, 10 and 100 files, each with its first search."""
    from app.library import Library

    embedder = HashingEmbedder() if hashing else onnx_embedder()
    marks = []
    with (
        tempfile.TemporaryDirectory() as place,
        Library(place, embedder=embedder) as library,
    ):
        clock, words = Clock(), 0
        for number, file in enumerate(files, 1):
            words += library.add(file).num_words
            if number in (1, 10, 100):
                start = time.perf_counter()
                library.search(QUERY)
                marks.append(
                    {
                        "books": number,
                        "words": words,
                        **clock.read(),
                        "index_s": round(time.perf_counter() - start, 3),
                        "resident_mb": round(psutil.Process().memory_info().rss / 1e6),
                        "disk_mb": round(
                            sum(f.stat().st_size for f in Path(place).rglob("*") if f.is_file())
                            / 1e6
                        ),
                    }
                )
    return marks


# ---- the parent: starts runs, watches their memory, takes medians --------------------------------


def child(what: str, files: list[Path], *, hashing: bool = False) -> dict | list[dict]:
    """Runs this script on files in a process of its own, with the peak memory of its tree."""
    command = [sys.executable, __file__, "one", "--system", what, *map(str, files)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
    }
    started = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command + ["--hashing"] * hashing,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env=environment,
        )
        peak, over = [0], threading.Event()
        watch = threading.Thread(target=_watch, args=(process.pid, peak, over), daemon=True)
        watch.start()
        out, _ = process.communicate()
        over.set()
        watch.join()
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"{what}: {log.read().decode(errors='replace')[-3000:]}")
    result = json.loads(out.splitlines()[-1])
    extra = {"peak_mb": round(peak[0] / 1e6), "process_s": round(time.perf_counter() - started, 2)}
    return {**result, **extra} if isinstance(result, dict) else [*result, extra]


def _watch(pid: int, peak: list[int], over: threading.Event) -> None:
    root = psutil.Process(pid)
    while not over.wait(0.05):
        total = 0
        try:
            for each in (root, *root.children(recursive=True)):
                try:
                    total += each.memory_info().rss
                except psutil.Error:
                    continue
        except psutil.Error:
            continue
        peak[0] = max(peak[0], total)


def reads(system: str, file: Path) -> bool:
    return not (system.startswith("langchain") and file.suffix == ".epub")


def compare(files: list[Path], runs: int, systems: list[str]) -> list[dict]:
    rows = []
    for file in files:
        taken: dict[str, list[dict]] = {s: [] for s in systems if reads(s, file)}
        for _ in range(runs):
            for system, results in taken.items():
                results.append(child(system, [file]))
        size = {key: taken["gistree"][0][key] for key in ("pages", "words", "tokens")}
        for system, results in taken.items():

            def median(key: str, results=results) -> float:
                return round(statistics.median(r[key] for r in results), 2)

            def ratio(key: str, results=results, ours=taken["gistree"]) -> float:
                pairs = zip(results, ours, strict=True)
                return round(statistics.median(a[key] / b[key] for a, b in pairs), 2)

            rows.append(
                {
                    "file": file.name,
                    **size,
                    "system": system,
                    "seconds": median("seconds"),
                    "cpu_seconds": median("cpu_seconds"),
                    "read_and_chunk_s": median("read_and_chunk_s"),
                    "pages_per_s": round(size["pages"] / median("seconds"), 1),
                    "tokens_per_s": round(size["tokens"] / median("seconds")),
                    "gistree_times_faster": ratio("seconds"),
                    "cpu_times_less": ratio("cpu_seconds"),
                    "peak_mb": median("peak_mb"),
                    "chunks": results[0]["chunks"],
                    "embedded_share": results[0].get("embedded_share", 1.0),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def made_books(folder: Path, count: int, words: int) -> list[Path]:
    """Books of real prose: parts of one novel, each with a first line and an order of its own."""
    novel = (DOCS / "moby-dick.txt").read_text(encoding="utf-8").split("\n\n")
    books = []
    for number in range(count):
        first = int(np.random.default_rng(number).integers(len(novel)))
        turned = novel[first:] + novel[:first]
        upto = np.searchsorted(np.cumsum([len(part.split()) for part in turned]), words)
        books.append(folder / f"book-{number:03}.txt")
        books[-1].write_text(
            f"Book number {number}\n\n" + "\n\n".join(turned[: int(upto)]), encoding="utf-8"
        )
    return books


def growth(words: int, real_words: int) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        books = made_books(Path(scratch), 100, words)
        marks = child("growth", books, hashing=True)
        small = Path(scratch) / "small"
        small.mkdir()
        real = child("growth", made_books(small, 10, real_words))
    return {
        "hashing": {"words_a_book": words, "marks": marks},
        "real": {"words_a_book": real_words, "marks": real},
    }


def memory(files: list[Path]) -> list[dict]:
    rows = []
    for file in files:
        result = child("gistree", [file], hashing=True)
        rows.append({"file": file.name, "size_mb": round(file.stat().st_size / 1e6, 1), **result})
        print(json.dumps(rows[-1]), flush=True)
    return rows


# ---- results -------------------------------------------------------------------------------------


def keep(what: str, result, command: list[str]) -> None:
    """Adds to today's results, and writes all of them as tables."""
    out = ROOT / "bench" / "results" / f"ingest-{date.today()}.json"
    kept = json.loads(out.read_text()) if out.exists() else {}
    kept["machine"] = {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()}
    if isinstance(result, list):  # rows of files: those of other files stay
        files = {row["file"] for row in result}
        earlier = kept.get(what, {"result": []})["result"]
        result = [row for row in earlier if row["file"] not in files] + result
    kept[what] = {"command": "python bench/ingest.py " + " ".join(command), "result": result}
    out.write_text(json.dumps(kept, indent=1) + "\n")
    out.with_suffix(".md").write_text(tables(kept))
    print(out.relative_to(ROOT))


def tables(kept: dict) -> str:
    cores, load = kept["machine"]["cores"], kept["machine"]["load"][0]
    lines = [
        f"# Ingest, {date.today()}",
        "",
        f"{cores} cores, shared with other work (load {load:.0f} at the end). Times are medians of "
        "runs that took turns; `x` is the median of the ratios within a turn: how many times as "
        "long as gistree, and with how many times its CPU time. How it is measured: "
        "`bench/ingest.py`.",
    ]
    if "compare" in kept:
        lines += ["", "## Beside the peers", "", f"`{kept['compare']['command']}`", ""]
        lines += [
            "| file | system | s | x | CPU s | CPU x | read + chunk s | pages/s | tokens/s "
            "| peak MB | chunks | of the text embedded |",
            "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for r in kept["compare"]["result"]:
            lines.append(
                f"| {r['file']} | {r['system']} | {r['seconds']} | {r['gistree_times_faster']} "
                f"| {r['cpu_seconds']} | {r['cpu_times_less']} | {r['read_and_chunk_s']} "
                f"| {r['pages_per_s']} | {r['tokens_per_s']:,} | {r['peak_mb']:.0f} "
                f"| {r['chunks']:,} | {r['embedded_share']:.0%} |"
            )
    if "growth" in kept:
        lines += ["", "## Growth", "", f"`{kept['growth']['command']}`"]
        for kind, part in kept["growth"]["result"].items():
            lines += [
                "",
                f"{'Real embedder' if kind == 'real' else 'Without embedding'}, books of "
                f"{part['words_a_book']:,} words; peak {part['marks'][-1]['peak_mb']} MB.",
                "",
                "| books | s | s a book | CPU s a book | of it the search index, s | resident MB "
                "| on disk MB |",
                "|--:|--:|--:|--:|--:|--:|--:|",
            ]
            for mark in part["marks"][:-1]:
                books = mark["books"]
                lines.append(
                    f"| {books} | {mark['seconds']} | {mark['seconds'] / books:.2f} "
                    f"| {mark['cpu_seconds'] / books:.2f} | {mark['index_s']} "
                    f"| {mark['resident_mb']} | {mark['disk_mb']} |"
                )
    if "memory" in kept:
        lines += ["", "## Memory on large files", "", f"`{kept['memory']['command']}`", ""]
        lines += ["| file | MB | pages | words | s without embedding | peak MB |"]
        lines += ["|---|--:|--:|--:|--:|--:|"]
        for r in kept["memory"]["result"]:
            lines.append(
                f"| {r['file']} | {r['size_mb']} | {r['pages']:,} | {r['words']:,} "
                f"| {r['seconds']} | {r['peak_mb']} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=("compare", "growth", "memory", "one"))
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--systems", default=",".join(SYSTEMS), help="by commas")
    options.add_argument("--words", type=int, default=20_000, help="of a book without embedding")
    options.add_argument("--real-words", type=int, default=5_000, help="of a book with it")
    options.add_argument("--system", help=argparse.SUPPRESS)
    options.add_argument("--hashing", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_intermixed_args()
    if given.what == "one":
        if given.system == "growth":
            print(json.dumps(run_growth(given.files, hashing=given.hashing)))
        else:
            print(json.dumps(run_one(given.system, given.files, hashing=given.hashing)))
        return
    if given.what == "compare":
        files = given.files or [DOCS / name for name in FILES]
        result = compare(files, given.runs, given.systems.split(","))
    elif given.what == "growth":
        result = growth(given.words, given.real_words)
    else:
        result = memory(given.files or [DOCS / "moby-dick.txt", DOCS / "moby-dick.epub"])
    keep(
        given.what,
        result,
        [part.replace(str(DOCS), "../shared/docs/good") for part in sys.argv[1:]],
    )


if __name__ == "__main__":
    main()
