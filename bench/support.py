"""Does the check of an answer tell one that the source bears out from one that it does not?

    python bench/support.py [--questions 80] [--sets fairytaleqa_val,xquad_en]

Takes gold answers with the text around their evidence, as the model would have had it. Each is
asked under its own question (must be borne out) and under another question of the same document
(right words, wrong question: should not be). And a question of another document is answered, as by
a model that knows it from elsewhere, where this one speaks most of it (should not be). Reports the
share that ``agents.support`` bears out, and the share whose best citation scores at least 0.5.
"""

import argparse
import json
import random
import sys
from datetime import date
from pathlib import Path

import numpy as np
import platformdirs
from evalsets import ROOT, SHARED

from agents.support import Evidence, Supporter
from memory.document import Span
from memory.sentences import sentences
from retrieval.onnx_embedder import OnnxEmbedder

KINDS = ("its own", "another", "of another document")
AROUND = 1_400  # characters before and after the evidence's middle: about a 700-token context
LEAST_SCORE = 0.5


def answer_of(question: dict) -> str:
    return str(question.get("answer") or (question.get("answers") or [""])[0])


def around(text: str, middle: int) -> list[Evidence]:
    """The sentences that stand about a place, as a model would have them before it."""
    start = max(0, middle - AROUND)
    part = text[start : middle + AROUND]
    return [
        Evidence("d", Span(start + s.start, start + s.end), s.of(part)) for s in sentences(part)
    ]


class Nearest:
    """Where a text speaks most of what a question asks."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self.embedder = embedder
        self.kept: dict[str, tuple[list[Span], np.ndarray]] = {}

    def middle(self, text: str, question: str) -> int:
        """The middle of the sentence that is nearest to a question, in characters."""
        if text not in self.kept:
            spans = list(sentences(text))
            self.kept[text] = spans, self.embedder.embed([span.of(text) for span in spans])
        spans, vectors = self.kept[text]
        best = spans[int(np.argmax(vectors @ self.embedder.embed_query(question)))]
        return (best.start + best.end) // 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=80, help="most questions a set")
    parser.add_argument("--sets", default="fairytaleqa_val,xquad_en")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    models = platformdirs.user_cache_path("gistree") / "models"
    embedder = OnnxEmbedder(
        models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2" / "tokenizer.json", "minilm"
    )
    nearest = Nearest(embedder)
    supporter = Supporter()
    report = {}
    for name in options.sets.split(","):
        rng = random.Random(1)
        file = SHARED / "eval" / f"{name}.jsonl"
        rows = []
        for line in file.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            asked = [q for q in document["questions"] if answer_of(q) and q.get("evidence")]
            rows += [(document["text"], q, asked) for q in asked]
        rng.shuffle(rows)
        counts = {kind: {"borne out": 0, "scores 0.5": 0} for kind in KINDS}
        total = 0
        for text, question, asked in rows[: options.questions]:
            places = [e for e in question["evidence"] if e.get("start") is not None]
            others = [q for q in asked if answer_of(q) != answer_of(question)]
            strange = [q for there, q, _ in rows if there != text]
            if not places or not others or not strange:
                continue
            total += 1
            evidence = around(text, (places[0]["start"] + places[0]["end"]) // 2)
            stranger = rng.choice(strange)
            elsewhere = around(text, nearest.middle(text, stranger["question"]))
            tried = {
                "its own": (question, question, evidence),
                "another": (rng.choice(others), question, evidence),
                "of another document": (stranger, stranger, elsewhere),
            }
            for kind, (under, answered, before) in tried.items():
                found = supporter.support(under["question"], answer_of(answered), before, embedder)
                counts[kind]["borne out"] += bool(found)
                counts[kind]["scores 0.5"] += bool(found) and found[0][1] >= LEAST_SCORE
        report[name] = {"questions": total} | {
            kind: {what: round(100 * n / total, 1) for what, n in row.items()}
            for kind, row in counts.items()
        }
        print(name, report[name])
    out = options.out / f"support-{date.today()}.json"
    command = "python bench/support.py " + " ".join(sys.argv[1:])
    out.write_text(json.dumps({"command": command, "sets": report}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
