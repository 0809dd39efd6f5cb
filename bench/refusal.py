"""Can it be told without a language model that a document does not answer a question?

    python bench/refusal.py [--half held-out] [--questions 25]

For three kinds of questions: with evidence, marked as having none, and meant for another document
of the same set; the share of each that ``retrieval.support`` puts below a threshold.
"""

import argparse
import json
from datetime import date
from pathlib import Path

import numpy as np
from evalsets import ROOT, load
from evidence import CachedEmbedder, Gistree

from retrieval.support import OFF_TOPIC, support

SETS = (
    *("contractnli_dev", "fairytaleqa_val", "hotpotqa", "bamboo_paperqa_4k", "needles"),
    *("qmsum_val", "litqa2", "leval_cuad"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=25, help="most questions of a kind")
    parser.add_argument("--half", choices=["held-out", "tune"], default="held-out")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--chars", type=int, default=0, help="most text a set; 0 takes all")
    parser.add_argument("--cache", type=Path, default=ROOT / ".run" / "bench")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    embedder = CachedEmbedder(options.cache)
    report = {}
    for name in options.sets.split(","):
        yes, no = load(name, options.half, options.questions, chars=options.chars)
        documents = {q.document.id: q.document for q in (*yes, *no)}
        libraries = {key: Gistree(embedder, each, pruner=None) for key, each in documents.items()}

        def score(question: str, key: str) -> float:
            text, found = documents[key].text, libraries[key].search(question)[:20]  # noqa: B023
            return support(question, [p.span.of(text) for p in found], embedder)

        keys = list(documents)
        others = [keys[(keys.index(q.document.id) + 1) % len(keys)] for q in yes]
        kinds = {
            "with evidence": [score(q.text, q.document.id) for q in yes],
            "not in it": [score(q.text, q.document.id) for q in no] if name != "qmsum_val" else [],
            "of another document": [score(q.text, k) for q, k in zip(yes, others, strict=True)],
        }
        report[name] = {
            kind: {
                "questions": len(scores),
                "refused": round(100 * float(np.mean(np.array(scores) < OFF_TOPIC)), 1),
                "scores": [round(s, 3) for s in scores],
            }
            for kind, scores in kinds.items()
            if scores
        }
        short = {kind: (row["questions"], row["refused"]) for kind, row in report[name].items()}
        print(name, short, flush=True)
        embedder.save()
        for each in libraries.values():
            each.close()
    file = options.out / f"refusal-{date.today()}.json"
    kept = {"threshold": OFF_TOPIC, "half": options.half, "sets": report}
    file.write_text(json.dumps(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
