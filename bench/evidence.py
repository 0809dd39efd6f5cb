"""How much of the gold evidence stands in the context that is put together, at equal tokens?

    pip install -r bench/requirements.txt
    python bench/evidence.py [--questions 30] [--half held-out] [--sets needles,hotpotqa]

For gistree's default, for gistree without each of its parts, and for the defaults of LlamaIndex
(SentenceSplitter) and LangChain (RecursiveCharacterTextSplitter, FAISS), all with the same
embedder. Tokens are counted by that embedder's tokenizer; gistree's page and section marks count,
the peers' passages are joined for nothing and the last one is cut where the budget ends. Covered:
characters of evidence inside the context, of all its characters, averaged over questions.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import platformdirs
from evalsets import ROOT, SETS, Question, load

from app.library import CHUNK_TOKENS
from memory.chunker import chunk
from memory.document import Document, Span
from memory.store import header
from retrieval.assemble import Excerpt, assemble, excerpts
from retrieval.fusion import Fusion
from retrieval.onnx_embedder import OnnxEmbedder
from retrieval.pruners.evidence import EvidencePruner
from retrieval.searcher import Searcher
from retrieval.types import Passage
from retrieval.word_index import WordIndex

BUDGETS = (256, 512, 1024, 2048)
TOP_K = 40
PEERS = ("LlamaIndex", "LangChain")


class CachedEmbedder:
    """The default embedder; what it has embedded once it reads from a folder."""

    def __init__(self, folder: Path) -> None:
        models = platformdirs.user_cache_path("gistree") / "models"
        model, tokenizer = models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2/tokenizer.json"
        self._embedder = OnnxEmbedder(model, tokenizer, "minilm-l6-v2-int8", num_threads=2)
        self.name, self.dim = self._embedder.name, self._embedder.dim
        self._file = folder / "vectors.npz"
        self._known: dict[bytes, np.ndarray] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self._file.is_file():
            with np.load(self._file) as kept:
                keys, rows = kept["keys"], kept["rows"]
            self._known = {key.tobytes(): row for key, row in zip(keys, rows, strict=True)}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors, made only for texts that were never seen."""
        keys = [hashlib.sha256(t.encode("utf-8", "replace")).digest()[:16] for t in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            vectors = self._embedder.embed(list(new.values())).astype(np.float16)
            self._known.update(zip(new, vectors, strict=True))
        rows = [self._known[key] for key in keys] or [np.zeros(self.dim)][:0]
        return np.array(rows, np.float32).reshape(len(texts), self.dim)

    def embed_query(self, query: str) -> np.ndarray:
        """Vector of a query."""
        return self.embed([query])[0]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return self._embedder.token_counts(texts)

    def save(self) -> None:
        """Keeps the vectors for the next run."""
        keys = np.array([np.frombuffer(key, np.uint8) for key in self._known])
        np.savez(self._file, keys=keys, rows=np.stack(list(self._known.values())))


class OneDocument:
    """A shelf that holds a single document."""

    def __init__(
        self, document: Document, embedder: CachedEmbedder, *, headers: bool, chunk_tokens: int
    ) -> None:
        self.document, self._embedder = document, embedder
        text = document.text
        self.spans = chunk(document, count_tokens=embedder.token_counts, max_tokens=chunk_tokens)
        self._texts = [(header(document, s) if headers else "", s.of(text)) for s in self.spans]

    def generation(self) -> int:
        """Never changes."""
        return 1

    def document_ids(self) -> set[str]:
        """The one document."""
        return {self.document.id}

    def first_chunks(self) -> dict[str, int]:
        """See ``chunk_ids``."""
        return {self.document.id: 0 if self.spans else -1}

    def chunk_ids(self, document_id: str) -> np.ndarray:
        """Numbers of its chunks."""
        return np.arange(len(self.spans), dtype=np.int64)

    def vectors(self, document_id: str, embedder: str) -> np.ndarray:
        """Vectors of its chunks."""
        return self._embedder.embed([f"{head}\n{text}".strip() for head, text in self._texts])

    def chunk_texts(self, document_id: str) -> list[tuple[str, str]]:
        """Headers and texts of its chunks."""
        return self._texts

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[str, Span]]:
        """Where chunks stand."""
        known = range(len(self.spans))
        return {n: (self.document.id, self.spans[n]) for n in chunk_ids if n in known}


Covered = Callable[[Question, int], tuple[list[Span], int]]
"""(question, budget) to the spans of its document in the context, and the context's tokens."""


class Gistree:
    """Search, prune, assemble; each part can be left out."""

    def __init__(self, embedder: CachedEmbedder, document: Document, **without: object) -> None:
        self._embedder, self._document = embedder, document
        self._shelf = OneDocument(
            document,
            embedder,
            headers=bool(without.get("headers", True)),
            chunk_tokens=int(str(without.get("chunk_tokens", CHUNK_TOKENS))),
        )
        self._order = without.get("order", "document")
        self._pruner = without.get("pruner", EvidencePruner())
        self._folder = tempfile.TemporaryDirectory(prefix="gistree-bench-")
        folder = Path(self._folder.name)
        self._words_only = bool(without.get("words_only"))
        self._last: tuple[str, list[Excerpt]] = ("", [])
        if self._words_only:
            self._words = WordIndex(folder)
            self._words.sync(self._shelf)
        else:
            fusion = without.get("fusion", Fusion())
            self._searcher = Searcher(self._shelf, embedder, folder, fusion=fusion)

    def search(self, question: str) -> list[Passage]:
        """The best passages."""
        if not self._words_only:
            return self._searcher.search(question, top_k=TOP_K)
        spans = self._shelf.spans
        hits = self._words.search(question, TOP_K)
        return [Passage(n, self._document.id, spans[n], score) for n, score in hits]

    def excerpts(self, question: str) -> list[Excerpt]:
        """What pruning leaves of them."""
        if self._last[0] != question:
            self._last = question, self._excerpts(question)
        return self._last[1]

    def _excerpts(self, question: str) -> list[Excerpt]:
        passages = self.search(question)
        texts = [p.span.of(self._document.text) for p in passages]
        kept = [[Span(0, len(text))] for text in texts]
        if self._pruner is not None:
            heads = [header(self._document, p.span) for p in passages]
            kept = self._pruner.prune(question, texts, headers=heads, embedder=self._embedder)
        return excerpts(passages, kept)

    def cover(self, question: Question, budget: int) -> tuple[list[Span], int]:
        """What stands in the context, and its tokens."""
        context = assemble(
            self.excerpts(question.text),
            {self._document.id: self._document},
            budget_tokens=budget,
            count_tokens=lambda text: self._embedder.token_counts([text])[0],
            order=self._order,
        )
        return [span for piece in context.pieces for span in piece.spans], context.tokens

    def close(self) -> None:
        """Gives back memory and files."""
        if not self._words_only:
            self._searcher.close()
        self._folder.cleanup()


class Peer:
    """A peer's default splitter and a flat vector search, filled up to the budget."""

    def __init__(self, name: str, embedder: CachedEmbedder, document: Document) -> None:
        import faiss

        self._embedder, self._text = embedder, document.text
        self._spans = {"LlamaIndex": _llama_index, "LangChain": _langchain}[name](document.text)
        self._index = faiss.IndexFlatIP(embedder.dim)
        self._index.add(embedder.embed([span.of(self._text) for span in self._spans]))

    def cover(self, question: Question, budget: int) -> tuple[list[Span], int]:
        """What stands in the context, and its tokens."""
        top_k = min(len(self._spans), 64)
        _, found = self._index.search(self._embedder.embed_query(question.text)[None], top_k)
        taken, used = [], 0
        for number in found[0].tolist():
            span = self._spans[number]
            tokens = self._embedder.token_counts([span.of(self._text)])[0]
            if used + tokens > budget:
                span = self._cut(span, budget - used)
                taken.append(span)
                used += self._embedder.token_counts([span.of(self._text)])[0]
                break
            taken.append(span)
            used += tokens
        return taken, used

    def _cut(self, span: Span, tokens: int) -> Span:
        low, high = span.start, span.end
        while low < high:
            middle = (low + high + 1) // 2
            if self._embedder.token_counts([self._text[span.start : middle]])[0] <= tokens:
                low = middle
            else:
                high = middle - 1
        return Span(span.start, low)

    def close(self) -> None:
        """Gives back memory and files."""
        self._index.reset()


def _llama_index(text: str) -> list[Span]:
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document as Source

    nodes = SentenceSplitter().get_nodes_from_documents([Source(text=text)])
    return [Span(node.start_char_idx, node.end_char_idx) for node in nodes]


def _langchain(text: str) -> list[Span]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=1000, chunk_overlap=200, add_start_index=True
    )
    parts = splitter.create_documents([text])
    starts = [part.metadata["start_index"] for part in parts]
    return [Span(s, s + len(p.page_content)) for s, p in zip(starts, parts, strict=True)]


def systems(embedder: CachedEmbedder) -> dict[str, Callable[[Document], Gistree | Peer]]:
    """Name to maker of a system over one document."""
    words = {"words": 0.0, "no_question": 0.0, "quoted": 0.0, "code": 0.0, "rare": 0.0}
    variants: dict[str, dict[str, object]] = {
        "gistree": {},
        "without pruning": {"pruner": None},
        "pruning harder (threshold 0.5)": {"pruner": EvidencePruner(threshold=0.5)},
        "without words (dense only)": {"fusion": Fusion(**words)},
        "without vectors (BM25 only)": {"words_only": True},
        "without title and section": {"headers": False},
        "without the neighbours' lift": {"fusion": Fusion(lift=0.0, stretches=False)},
        "without stretches": {"fusion": Fusion(stretches=False)},
        "without document order": {"order": "relevance"},
        "chunks of 128 tokens": {"chunk_tokens": 128},
        "chunks of 192 tokens": {"chunk_tokens": 192},
    }
    made: dict[str, Callable[[Document], Gistree | Peer]] = {
        name: (lambda document, parts=parts: Gistree(embedder, document, **parts))
        for name, parts in variants.items()
    }
    for name in PEERS:
        made[name] = lambda document, name=name: Peer(name, embedder, document)
    return made


def share(evidence: Sequence[Span], taken: Sequence[Span], size: int) -> float:
    """Share of the evidence's characters that were taken."""
    inside = np.zeros(size, bool)
    for span in taken:
        inside[span.start : span.end] = True
    wanted = np.zeros(size, bool)
    for span in evidence:
        wanted[span.start : span.end] = True
    return float(inside[wanted].mean())


def pruned(system: Gistree, whole: Gistree, question: Question, budget: int) -> list[float]:
    """Coverage before and after, tokens before and after, of the passages that fill a budget."""
    text = question.document.text
    before, _ = whole.cover(question, budget)
    inside = np.zeros(len(text), bool)
    for span in before:
        inside[span.start : span.end] = True
    after = [
        span
        for excerpt in system.excerpts(question.text)
        for span in excerpt.spans
        if inside[span.start : span.end].mean() > 0.5
    ]
    count = system._embedder.token_counts
    return [
        share(question.evidence, before, len(text)),
        share(question.evidence, after, len(text)),
        float(sum(count([span.of(text) for span in before]))),
        float(sum(count([span.of(text) for span in after]))),
    ]


def interval(values: Sequence[float]) -> list[float]:
    """95 % bootstrap interval of the mean, in points."""
    random = np.random.default_rng(0)
    drawn = random.choice(np.array(values), (2000, len(values))).mean(1)
    return [round(100 * float(v), 1) for v in np.percentile(drawn, [2.5, 97.5])]


def measure(name: str, questions: list[Question], made: dict) -> dict:
    """Coverage of one set for all systems and budgets, and what pruning does."""
    documents = {q.document.id: q.document for q in questions}
    values: dict[str, dict[int, list[float]]] = {s: {b: [] for b in BUDGETS} for s in made}
    cuts: dict[int, list[list[float]]] = {2048: [], 100_000: []}
    for key, document in documents.items():
        asked = [q for q in questions if q.document.id == key]
        running = {system: make(document) for system, make in made.items()}
        for question in asked:
            for system, each in running.items():
                for budget in BUDGETS:
                    taken, tokens = each.cover(question, budget)
                    if tokens > budget:
                        raise AssertionError(f"{system} took {tokens} of {budget} tokens")
                    covered = share(question.evidence, taken, len(document.text))
                    values[system][budget].append(covered)
            if "gistree" in running and "without pruning" in running:
                for budget, rows in cuts.items():
                    both = running["gistree"], running["without pruning"]
                    rows.append(pruned(*both, question, budget))
        for each in running.values():
            each.close()
    result: dict = {"questions": len(questions), "documents": len(documents), "covered": {}}
    for system, by_budget in values.items():
        result["covered"][system] = {
            str(budget): {
                "mean": round(100 * float(np.mean(some)), 1),
                "interval": interval(some),
                "all": round(100 * float(np.mean(np.array(some) > 0.999)), 1),
            }
            for budget, some in by_budget.items()
        }
    if "gistree" in made and "without pruning" in made:
        for budget, rows in cuts.items():
            before, after, tokens, left = np.mean(rows, 0).tolist()
            place = "2048 tokens" if budget == 2048 else "all passages found"
            result.setdefault("pruning", {})[place] = {
                "lost_points": round(100 * (before - after), 2),
                "tokens_removed": round(100 * (1 - left / max(tokens, 1)), 1),
            }
    return result


def table(results: dict, command: str) -> str:
    """The figures as Markdown."""
    sets = list(results)
    names = list(results[sets[0]]["covered"])
    lines = [f"# Evidence in the context, {date.today()}", "", f"`{command}`", ""]
    for budget in BUDGETS:
        lines += ["", f"## {budget:,} tokens: % of gold evidence covered", ""]
        lines.append(f"| | {' | '.join(sets)} | mean |")
        lines.append(f"|---|{'---|' * (len(sets) + 1)}")
        for name in names:
            row = [results[s]["covered"][name][str(budget)]["mean"] for s in sets]
            cells = " | ".join(f"{v:.1f}" for v in [*row, float(np.mean(row))])
            lines.append(f"| {name} | {cells} |")
    if all("pruning" in results[s] for s in sets):
        lines += ["", "## What pruning takes", ""]
        lines += ["| set | of | tokens removed, % | coverage lost, points |", "|---|---|---|---|"]
        for name in sets:
            for place, row in results[name]["pruning"].items():
                lines.append(
                    f"| {name} | {place} | {row['tokens_removed']} | {row['lost_points']} |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=30, help="most questions a set")
    parser.add_argument("--half", choices=["held-out", "tune"], default="held-out")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default="", help="comma-separated; all by default")
    parser.add_argument("--chars", type=int, default=0, help="most text a set; 0 takes all")
    parser.add_argument("--label", default="", help="added to the names of the results' files")
    parser.add_argument("--cache", type=Path, default=ROOT / ".run" / "bench")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    embedder = CachedEmbedder(options.cache)
    made = systems(embedder)
    if options.systems:
        made = {name: made[name] for name in options.systems.split(",")}
    command = f"python bench/evidence.py {' '.join(sys.argv[1:])}".strip()
    labels = ["tune"] * (options.half == "tune") + [options.label] * bool(options.label)
    stem = options.out / "-".join(["evidence", str(date.today()), *labels])
    results: dict[str, dict] = {}
    for name in options.sets.split(","):
        start = time.time()
        questions, _ = load(name, options.half, options.questions, chars=options.chars)
        results[name] = measure(name, questions, made)
        embedder.save()
        at_1024 = {s: r["1024"]["mean"] for s, r in results[name]["covered"].items()}
        print(f"{name}: {len(questions)} questions, {time.time() - start:.0f} s, {at_1024}")
        print(f"    {results[name].get('pruning')}", flush=True)
        report = {"command": command, "date": str(date.today()), "sets": results}
        Path(f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        Path(f"{stem}.md").write_text(table(results, command), encoding="utf-8")
    print(table(results, command))


if __name__ == "__main__":
    main()
