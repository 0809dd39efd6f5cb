"""Which library should search words: tantivy, SQLite FTS5 or bm25s? Speed, size and ranking.

    python bench/words.py [--sizes 10000,100000] [--eval ../shared/eval]

bm25s is measured where it is installed. Timed text is drawn from the evaluation texts' own word
frequencies, and CPU seconds are counted, since all of them work on one core. Ranking: windows of
150 words (300 characters where words are not spaced), at most 40 questions a document, each asked
of its own document; hit@5: some gold evidence is touched; all@5: all of it is.
"""

import argparse
import json
import random
import shutil
import sqlite3
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from retrieval.words import index_words, query_words

ROOT = Path(__file__).resolve().parent.parent
SETS = [
    *("fairytaleqa_val", "contractnli_dev", "hotpotqa", "leval_cuad", "needles"),
    *("bamboo_paperqa_4k", "xquad_en", "xquad_de", "xquad_ru", "xquad_ar", "xquad_hi"),
    *("xquad_th", "xquad_zh"),
]


class Tantivy:
    """Words that we have parted already, optionally stemmed."""

    def __init__(self, folder: Path, stem: str = "") -> None:
        import tantivy as t

        self.t = t
        schema = (
            t.SchemaBuilder()
            .add_text_field("document", tokenizer_name="raw", index_option="basic")
            .add_unsigned_field("chunk", fast=True)
            .add_text_field("words", tokenizer_name="w", index_option="freq")
            .build()
        )
        folder.mkdir()
        self.index = t.Index(schema, str(folder))
        builder = t.TextAnalyzerBuilder(t.Tokenizer.whitespace())
        if stem:
            builder = builder.filter(t.Filter.stemmer(stem))
        self.analyzer = builder.build()
        self.index.register_tokenizer("w", self.analyzer)
        self.writer = self.index.writer(50_000_000, 1)
        self.schema = schema

    def add(self, chunks) -> None:
        """Indexes (number, document, text) rows and makes them findable."""
        for number, document, text in chunks:
            row = self.t.Document()
            row.add_unsigned("chunk", number)
            row.add_text("document", document)
            row.add_text("words", " ".join(index_words(text)))
            self.writer.add_document(row)
        self.writer.commit()
        self.index.reload()

    def delete(self, document: str) -> None:
        """Takes a document out."""
        self.writer.delete_documents_by_term("document", document)
        self.writer.commit()
        self.index.reload()

    def search(self, query: str, k: int, document: str | None = None) -> list[int]:
        """Numbers of the best chunks, best first."""
        words = self.analyzer.analyze(" ".join(query_words(query)))
        q, occur = self.t.Query, self.t.Occur
        parts = [
            (occur.Should, q.term_query(self.schema, "words", word, index_option="freq"))
            for word in dict.fromkeys(words)
        ]
        query_ = q.boolean_query(parts)
        if document:
            only = q.boost_query(q.term_query(self.schema, "document", document, "basic"), 0.0)
            query_ = q.boolean_query([(occur.Must, only), (occur.Must, query_)])
        searcher = self.index.searcher()
        found = searcher.search(query_, k, count=False).hits
        return searcher.fast_field_values("chunk", [address for _, address in found])


class Fts5:
    """SQLite's own full-text index, over the same words."""

    def __init__(self, folder: Path, stem: str = "") -> None:
        folder.mkdir()
        self.db = sqlite3.connect(folder / "words.sqlite")
        self.db.execute("PRAGMA journal_mode=WAL")
        tokenizer = ("porter " if stem else "") + "unicode61 remove_diacritics 0"
        self.db.execute(f"CREATE VIRTUAL TABLE passages USING fts5(words, tokenize='{tokenizer}')")
        self.db.execute("CREATE TABLE owner(chunk INTEGER PRIMARY KEY, document TEXT)")
        self.db.execute("CREATE INDEX by_document ON owner(document)")

    def add(self, chunks) -> None:
        """Indexes (number, document, text) rows and makes them findable."""
        with self.db:
            for number, document, text in chunks:
                self.db.execute(
                    "INSERT INTO passages(rowid, words) VALUES (?, ?)",
                    (number, " ".join(index_words(text))),
                )
                self.db.execute("INSERT INTO owner VALUES (?, ?)", (number, document))

    def delete(self, document: str) -> None:
        """Takes a document out."""
        with self.db:
            mine = "SELECT chunk FROM owner WHERE document = ?"
            self.db.execute(f"DELETE FROM passages WHERE rowid IN ({mine})", (document,))
            self.db.execute("DELETE FROM owner WHERE document = ?", (document,))

    def search(self, query: str, k: int, document: str | None = None) -> list[int]:
        """Numbers of the best chunks, best first."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(query_words(query)))
        only = "AND rowid IN (SELECT chunk FROM owner WHERE document = ?)" if document else ""
        rows = self.db.execute(
            f"SELECT rowid FROM passages WHERE passages MATCH ? {only} ORDER BY rank LIMIT ?",
            (match, document, k) if document else (match, k),
        )
        return [row[0] for row in rows]


class Bm25s:
    """Scores worked out beforehand; adding or deleting means building anew."""

    def __init__(self, folder: Path, stem: str = "") -> None:
        import bm25s

        self.bm25s, self.chunks, self.folder = bm25s, [], folder

    def add(self, chunks) -> None:
        """Indexes (number, document, text) rows and makes them findable."""
        self.chunks += chunks
        self._build()

    def delete(self, document: str) -> None:
        """Takes a document out."""
        self.chunks = [chunk for chunk in self.chunks if chunk[1] != document]
        self._build()

    def _build(self) -> None:
        self.index = self.bm25s.BM25(k1=1.2, b=0.75)
        self.index.index([index_words(c[2]) for c in self.chunks], show_progress=False)
        self.index.save(self.folder, show_progress=False)
        self.numbers = np.array([chunk[0] for chunk in self.chunks])
        self.owners = np.array([chunk[1] for chunk in self.chunks])

    def search(self, query: str, k: int, document: str | None = None) -> list[int]:
        """Numbers of the best chunks, best first."""
        mask = (self.owners == document).astype(np.float32) if document else None
        words = [list(dict.fromkeys(query_words(query)))]
        k = min(k, len(self.numbers))
        rows, scores = self.index.retrieve(
            words, k=k, show_progress=False, n_threads=0, weight_mask=mask
        )
        return [int(self.numbers[row]) for row, s in zip(rows[0], scores[0], strict=True) if s > 0]


ENGINES = {
    "tantivy": (Tantivy, ""),
    "tantivy, English stems": (Tantivy, "english"),
    "bm25s": (Bm25s, ""),
    "fts5": (Fts5, ""),
}


def windows(text: str, spaced: bool) -> list[tuple[int, int]]:
    """Starts and ends of the windows of a text."""
    if not spaced:
        return [(at, min(at + 300, len(text))) for at in range(0, len(text), 300)]
    ends = [match for match, c in enumerate(text) if c.isspace()][149::150]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))


def ranking(engine, stem: str, name: str, folder: Path, texts: Path) -> dict[str, float]:
    """hit@5 and all@5 of a set."""
    documents = [json.loads(line) for line in (texts / f"{name}.jsonl").open()]
    chunks, spans = [], {}
    for number, document in enumerate(documents):
        for start, end in windows(document["text"], name not in ("xquad_zh", "xquad_th")):
            spans[len(chunks)] = (start, end)
            chunks.append((len(chunks), str(number), document["text"][start:end]))
    index = engine(folder, stem)
    index.add(chunks)
    hits, alls, asked = 0, 0, 0
    for number, document in enumerate(documents):
        for question in document["questions"][:40]:
            gold = [e for e in question.get("evidence") or [] if e["start"] is not None]
            if not gold:
                continue
            found = [spans[c] for c in index.search(question["question"], 5, str(number))]
            touched = [any(s < e["end"] and e["start"] < t for s, t in found) for e in gold]
            hits, alls, asked = hits + any(touched), alls + all(touched), asked + 1
    return {"hit@5": round(100 * hits / asked, 1), "all@5": round(100 * alls / asked, 1)}


def speed(engine, stem: str, size: int, folder: Path, words, weights) -> dict[str, float]:
    """Seconds, milliseconds and megabytes with ``size`` chunks of 120 words."""
    rng = np.random.default_rng(7)
    index = engine(folder, stem)

    def chunks(first: int, count: int, per_document: int = 500):
        drawn = rng.choice(len(words), (count, 120), p=weights)
        return [
            (
                first + row,
                f"d{(first + row) // per_document}",
                " ".join(words[w] for w in drawn[row]),
            )
            for row in range(count)
        ]

    parts, built = 1 if engine is Bm25s else max(1, size // 50_000), 0.0
    for part in range(parts):
        batch = chunks(part * (size // parts), size // parts)
        start = time.process_time()
        index.add(batch)
        built += time.process_time() - start
    questions = [
        " ".join(words[w] for w in rng.choice(len(words), 10, p=weights)) for _ in range(200)
    ]
    index.search(questions[0], 50)
    times = []
    for question in questions:
        start = time.process_time()  # CPU time: each search runs on one core
        index.search(question, 50)
        times.append(1000 * (time.process_time() - start))
    more = chunks(size, 500)
    start = time.perf_counter()
    index.add(more)
    added = time.perf_counter() - start
    start = time.perf_counter()
    index.delete(more[0][1])
    return {
        "build_cpu_s": round(built, 1),
        "query_cpu_p50_ms": round(float(np.percentile(times, 50)), 2),
        "query_cpu_p95_ms": round(float(np.percentile(times, 95)), 2),
        "add_500_s": round(added, 2),
        "delete_500_s": round(time.perf_counter() - start, 2),
        "disk_mb": round(sum(f.stat().st_size for f in folder.rglob("*")) / 1e6, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="10000,100000")
    options.add_argument("--eval", type=Path, default=ROOT / "../shared/eval")
    given = options.parse_args()
    text = " ".join(
        json.loads(line)["text"]
        for name in ("needles", "leval_cuad", "hotpotqa")
        for line in (given.eval / f"{name}.jsonl").open()
    ).split()
    random.Random(7).shuffle(text)
    words, counts = np.unique(text, return_counts=True)
    result: dict[str, dict] = {}
    out = ROOT / "bench" / "results" / f"words-{date.today()}.json"
    for name, (engine, stem) in ENGINES.items():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                entry = {
                    each: ranking(engine, stem, each, Path(scratch) / each, given.eval)
                    for each in SETS
                }
            except ImportError as missing:
                print(f"{name}: left out, {missing}")
                continue
            result[name] = {"ranking": entry, "speed": {}}
            hit = {each: entry[each]["hit@5"] for each in SETS}
            print(name, hit, "mean", round(sum(hit.values()) / len(hit), 1), flush=True)
            for size in map(int, given.sizes.split(",")):
                if stem:
                    continue
                folder = Path(scratch) / str(size)
                result[name]["speed"][size] = speed(
                    engine, stem, size, folder, words, counts / counts.sum()
                )
                print(name, size, result[name]["speed"][size], flush=True)
                shutil.rmtree(folder, ignore_errors=True)
            out.write_text(json.dumps(result, indent=1) + "\n")
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
