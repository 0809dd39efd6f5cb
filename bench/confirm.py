"""Are questions refused whose answer is not in what was read, and only those?

    python bench/confirm.py [--half held-out] [--questions 10] [--minutes 30]

Each question of a set is read three times under one budget: with the passages that a search finds
("present", where what is read holds all the evidence), with those that hold evidence taken away
("removed": the hardest case, the rest of the same document is still there), and with the passages
of another document ("stranger"). Questions that the set marks as unanswerable are a fourth kind.
Reports the share that the model refuses by itself, and with ``agents.confirming`` after it; the
bounds there were set on the half "tune". Answers are kept as lines of a file, so that the same
command goes on.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from evalsets import ROOT, Question, load
from evidence import CachedEmbedder, Gistree

from agents.answer import Answer
from agents.answering import Answering, Basis
from agents.confirming import Confirmer
from agents.desk import Desk
from agents.steps import Confirmed
from app.models import open_model
from app.settings import Settings
from memory.document import Document, Span
from retrieval.assemble import assemble, excerpts
from retrieval.types import Passage
from serving.model import LanguageModel

SETS = ("fairytaleqa_val", "xquad_en", "needles", "hotpotqa", "bamboo_paperqa_4k")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=["held-out", "tune"], default="held-out")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--questions", type=int, default=10, help="most questions of a kind")
    parser.add_argument("--budget", type=int, default=360, help="tokens of passages")
    parser.add_argument("--chars", type=int, default=150_000, help="most text a set")
    parser.add_argument("--minutes", type=float, default=0, help="stop asking after so long")
    parser.add_argument("--cache", type=Path, default=ROOT / ".run" / "bench")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    ends = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    options.cache.mkdir(parents=True, exist_ok=True)
    kept = options.cache / f"confirm-{options.half}.jsonl"
    known = {row["key"] for row in rows_of(kept)}
    model, embedder = open_model(Settings()), CachedEmbedder(options.cache)
    with kept.open("a", encoding="utf-8") as file:
        for name in options.sets.split(","):
            for key, kind, question, document, passages in cases(name, options, embedder):
                if key in known or time.monotonic() > ends:
                    continue
                row = {"key": key, "set": name, "kind": kind}
                row |= ask(model, embedder, question, document, passages, options.budget)
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(key, kind, "refused" if row["refused"] else row["sureness"], flush=True)
            embedder.save()
    rows = rows_of(kept)
    report = {
        name: summary([r for r in rows if name in (r["set"], "all")])
        for name in (*dict.fromkeys(r["set"] for r in rows), "all")
    }
    command = f"python bench/confirm.py --half {options.half} --questions {options.questions}"
    file = options.out / f"confirm-{date.today()}-{options.half}.json"
    whole = {"command": command, "model": model.name, "least": Confirmer().least}
    file.write_text(json.dumps(whole | {"report": report, "rows": rows}, indent=1) + "\n")
    print(json.dumps(report["all"], indent=1))


def rows_of(file: Path) -> list[dict]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def cases(
    name: str, options: argparse.Namespace, embedder: CachedEmbedder
) -> Iterator[tuple[str, str, Question, Document, list[Passage]]]:
    """(key, kind, question, document that is read, passages found in it), of one set."""
    yes, no = load(name, options.half, options.questions, chars=options.chars)
    documents = {q.document.id: q.document for q in (*yes, *no)}
    libraries = {key: Gistree(embedder, d, pruner=None) for key, d in documents.items()}
    keys = list(documents)
    for question in yes:
        here = question.document.id
        found = libraries[here].search(question.text)
        without = [p for p in found if not _touches(p.span, question.evidence)]
        yield f"{name}/{question.id}/present", "present", question, question.document, found
        yield f"{name}/{question.id}/removed", "removed", question, question.document, without
        if len(keys) > 1:
            other = keys[(keys.index(here) + 1) % len(keys)]
            found = libraries[other].search(question.text)
            yield f"{name}/{question.id}/stranger", "stranger", question, documents[other], found
    for question in no:
        found = libraries[question.document.id].search(question.text)
        yield f"{name}/{question.id}/marked", "marked", question, question.document, found
    for library in libraries.values():
        library.close()


def _touches(span: Span, evidence: tuple[Span, ...]) -> bool:
    return any(span.start < e.end and e.start < span.end for e in evidence)


def holds_all(spans: list[Span], evidence: tuple[Span, ...]) -> bool:
    """Whether every piece of evidence is touched: a question of two hops needs both."""
    return bool(evidence) and all(_touches(piece, tuple(spans)) for piece in evidence)


def ask(
    model: LanguageModel,
    embedder: CachedEmbedder,
    question: Question,
    document: Document,
    passages: list[Passage],
    budget: int,
) -> dict:
    """What comes of it, and whether evidence stood in what was read."""
    text, spans = reading(model, document, passages, budget)
    desk = Desk(
        documents=(document.id,),
        search=lambda _query, _top_k: passages,
        document=lambda _key: document,
        model=model,
        embedder=embedder,
        pruner=None,
        budget_tokens=budget,
        memories=None,  # this reads passages alone
    )
    basis = Basis(text, [(document.id, span) for span in spans], passages)
    answering = Answering("confirm", time.perf_counter())
    steps = list(answering.answer(desk, question.text, basis))
    answer = next(step for step in steps if isinstance(step, Answer))
    confirmed = next((step for step in steps if isinstance(step, Confirmed)), None)
    drafted = next(str(step) for step in steps if type(step).__name__ == "Drafted")
    return {
        "question": question.text,
        "draft": drafted,
        "evidence read": holds_all(spans, question.evidence),
        "refused by the model": not answer.found and confirmed is None,
        "sureness": round(confirmed.sureness, 3) if confirmed else None,
        "refused": not answer.found,
        "seconds": round(answer.seconds, 2),
    }


def reading(
    model: LanguageModel, document: Document, passages: list[Passage], budget: int
) -> tuple[str, list[Span]]:
    """What the prompt shows of the passages, and where that stands in the document."""
    whole = [[Span(0, p.span.end - p.span.start)] for p in passages]
    context = assemble(
        excerpts(passages, whole),
        {document.id: document},
        budget_tokens=budget,
        count_tokens=model.count_tokens,
    )
    return context.text, [span for piece in context.pieces for span in piece.spans]


def summary(rows: list[dict]) -> dict:
    """Shares in per cent; "present" counts only where all the evidence was read."""
    report = {}
    for kind in ("present", "removed", "stranger", "marked"):
        some = [r for r in rows if r["kind"] == kind]
        some = [r for r in some if r["evidence read"]] if kind == "present" else some
        if some:
            report[kind] = {
                "questions": len(some),
                "refused by the model, %": _share(r["refused by the model"] for r in some),
                "refused, %": _share(r["refused"] for r in some),
            }
    return report


def _share(values: Iterator[bool]) -> float:
    some = list(values)
    return round(100 * sum(some) / len(some), 1)


if __name__ == "__main__":
    main()
