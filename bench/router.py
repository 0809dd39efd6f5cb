"""Does the router tell what kind a question is, and send it to a reader that fits?

    python bench/router.py [--model]

On questions labelled by hand (``router_questions.jsonl``), half of which the rules were written
with ("tune"), half of which they were not ("held-out"). The readers that fit were labelled for two
machines: a small model on two processor cores, and a large one on a server. With --model the
default model is asked, too, by log-probability. Where the public question sets are at hand, the
kinds that their questions are taken for are counted, too: nobody labelled those, but nearly all of
FairytaleQA are look-ups, and all of HotpotQA take two steps or compare. The rules were written in
sight of them.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

from agents.question_kind import KINDS, kind_of
from agents.routing import Machine, Task, route

HERE = Path(__file__).parent
TOKENS_PER_WORD = 1.35
MACHINES = {
    "laptop": Machine(ability="small", window=8_192, tokens_per_s=30.0, budget_tokens=700),
    "server": Machine(ability="large", window=32_768, tokens_per_s=3_000.0, budget_tokens=4_000),
}
PATIENCE_S = 300.0
EVAL = Path(os.environ.get("GISTREE_SHARED", HERE.parent.parent / "shared")) / "eval"
PUBLIC = ("fairytaleqa_val.jsonl", "hotpotqa.jsonl", "qmsum_val.jsonl", "xquad_de.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="store_true", help="ask the default model, too")
    parser.add_argument("--misses", action="store_true", help="print the misses of the tuning half")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    lines = (HERE / "router_questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    ways: dict[str, Callable[[str], str]] = {"rules": lambda question: kind_of(question)[0]}
    if options.model:
        ways |= by_model()
    report = {}
    for way, tell in ways.items():
        told = [tell(row["question"]) for row in rows]
        report[way] = {
            half: measured([(r, k) for r, k in zip(rows, told, strict=True) if r["half"] == half])
            for half in ("tune", "held-out")
        }
        print(way, json.dumps(report[way], indent=1, ensure_ascii=False))
        if options.misses:
            for row, kind in zip(rows, told, strict=True):
                if row["half"] == "tune" and kind != row["kind"]:
                    print(f"  {row['kind']:>9} told {kind:>9}: {row['question']}")
    report["public sets"] = {name: kinds_of(name) for name in PUBLIC if (EVAL / name).is_file()}
    print(json.dumps(report["public sets"], indent=1))
    file = options.out / f"router-{date.today()}.json"
    file.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def measured(rows: list[tuple[dict, str]]) -> dict:
    """Shares in percent, and which kinds were taken for which."""
    routed = {
        name: sum(reader(row, kind, machine) in row["readers"][name] for row, kind in rows)
        for name, machine in MACHINES.items()
    }
    confused = Counter((row["kind"], kind) for row, kind in rows if row["kind"] != kind)
    return {
        "questions": len(rows),
        "kind": percent(sum(row["kind"] == kind for row, kind in rows), len(rows)),
        "most frequent kind": percent(max(Counter(r["kind"] for r, _ in rows).values()), len(rows)),
        **{f"reader, {name}": percent(right, len(rows)) for name, right in routed.items()},
        "kinds": {
            kind: percent(
                sum(k == kind for r, k in rows if r["kind"] == kind),
                sum(r["kind"] == kind for r, _ in rows),
            )
            for kind in KINDS
        },
        "confused": {f"{a} → {b}": n for (a, b), n in confused.most_common()},
    }


def reader(row: dict, kind: str, machine: Machine) -> str:
    """Name of the reader that the router takes."""
    task = Task(
        kind=kind,
        tokens=round(row["words"] * TOKENS_PER_WORD),
        num_documents=row["document"].count(";") + 1,
        patience_s=PATIENCE_S,
    )
    return route(task, machine).reader.partition(":")[0]


def kinds_of(name: str) -> dict[str, int]:
    """How many questions of a public set are taken for each kind."""
    lines = (EVAL / name).read_text(encoding="utf-8").splitlines()
    questions = [each["question"] for line in lines for each in json.loads(line)["questions"]]
    return dict(Counter(kind_of(question)[0] for question in questions).most_common())


def by_model() -> dict[str, Callable[[str], str]]:
    """The default model, asked each time, and only where the rules do not know."""
    from agents.routing import kind_by_model
    from app.models import open_model
    from app.settings import Settings

    model = open_model(Settings())

    def always(question: str) -> str:
        return kind_by_model(model, question).value or "look-up"

    def unsure(question: str) -> str:
        kind, told_by = kind_of(question)
        return kind if told_by else always(question)

    return {"model": always, "rules, else model": unsure}


def percent(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 1)


if __name__ == "__main__":
    main()
