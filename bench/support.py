"""Does the check of an answer tell one that the source bears out from one that it does not?

    python bench/support.py [--questions 80]

Takes gold answers with the text around their evidence, as the model would have had it. Each is
asked under its own question (must be borne out) and under another question of the same document
(right words, wrong question: should not be). Reports the share that ``agents.support`` bears out,
and the share whose best citation scores at least 0.5.
"""

import argparse
import json
import random
from datetime import date
from pathlib import Path

import platformdirs
from evalsets import ROOT, SHARED

from agents.support import Evidence, Supporter
from memory.document import Span
from memory.sentences import sentences
from retrieval.onnx_embedder import OnnxEmbedder

SETS = ("fairytaleqa_val", "xquad_en")
AROUND = 1_400  # characters before and after the evidence's middle: about a 700-token context
LEAST_SCORE = 0.5


def answer_of(question: dict) -> str:
    return str(question.get("answer") or (question.get("answers") or [""])[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=80, help="most questions a set")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    models = platformdirs.user_cache_path("gistree") / "models"
    embedder = OnnxEmbedder(
        models / "minilm-l6-v2-int8.onnx", models / "minilm-l6-v2" / "tokenizer.json", "minilm"
    )
    rng = random.Random(1)
    report = {}
    for name in SETS:
        file = SHARED / "eval" / f"{name}.jsonl"
        rows = []
        for line in file.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            asked = [q for q in document["questions"] if answer_of(q) and q.get("evidence")]
            rows += [(document["text"], q, asked) for q in asked]
        rng.shuffle(rows)
        counts = {kind: {"borne out": 0, "scores 0.5": 0} for kind in ("its own", "another")}
        total = 0
        for text, question, asked in rows[: options.questions]:
            places = [e for e in question["evidence"] if e.get("start") is not None]
            others = [q for q in asked if answer_of(q) != answer_of(question)]
            if not places or not others:
                continue
            total += 1
            middle = (places[0]["start"] + places[0]["end"]) // 2
            start = max(0, middle - AROUND)
            around = text[start : middle + AROUND]
            evidence = [
                Evidence("d", Span(start + s.start, start + s.end), s.of(around))
                for s in sentences(around)
            ]
            for kind, under in (("its own", question), ("another", rng.choice(others))):
                found = Supporter().support(
                    under["question"], answer_of(question), evidence, embedder
                )
                counts[kind]["borne out"] += bool(found)
                counts[kind]["scores 0.5"] += bool(found) and found[0][1] >= LEAST_SCORE
        report[name] = {"questions": total} | {
            kind: {what: round(100 * n / total, 1) for what, n in row.items()}
            for kind, row in counts.items()
        }
        print(name, report[name])
    out = options.out / f"support-{date.today()}.json"
    command = f"python bench/support.py --questions {options.questions}"
    out.write_text(json.dumps({"command": command, "sets": report}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
