"""What each reader answers, and what it spends, with the same model on the same questions.

    python bench/readers.py [--readers full,oprag,gist,tree,auto] [--minutes 60]

For each set of questions: share of right choices or token-F1, answers that hold the gold wording,
evidence read whole (all its wording stood in the last prompt, from which pruning drops sentences)
and cited, refusals of questions that have an answer and of those that have none, quotes that do not
stand in the source, tokens, calls and seconds. Beside the readers: ``closed-book`` (the question
alone, a control for what the model knows by heart) and, where LlamaIndex is installed, its vector
and tree query engines over the same model. Every answer is kept as a line of a file, so that a run
that ends early goes on with the same command.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
from answersets import LETTERS, Asked, Source, holds, load, token_f1
from evalsets import ROOT

from agents.answer import Answer
from agents.quotes import locate
from app.library import Library
from app.models import open_embedder, open_model
from app.settings import Settings
from serving.errors import ModelError
from serving.model import Completion, LanguageModel, Message

SETS = ("fairytaleqa_val", "quality", "hotpotqa", "needles")
PEERS = ("llamaindex-vector", "llamaindex-tree")
READERS = ("closed-book", "full", "oprag", "gist", "tree", "agent", "auto")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--readers", default=",".join(READERS), help="with options: oprag:top_k=5")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--documents", type=int, default=4, help="most documents a set")
    parser.add_argument("--questions", type=int, default=12, help="most questions a set")
    parser.add_argument("--strangers", type=int, default=4, help="questions without an answer")
    parser.add_argument("--words", type=int, default=6_000, help="longer documents are left out")
    parser.add_argument("--least-words", type=int, default=0, help="and shorter ones")
    parser.add_argument("--budget", type=int, default=0, help="tokens; 0: the model's usual one")
    parser.add_argument("--minutes", type=float, default=0, help="stop asking after so long")
    parser.add_argument("--rows", type=Path, default=ROOT / ".run" / "bench" / "readers.jsonl")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    with tempfile.TemporaryDirectory(prefix="gistree-bench-") as folder:
        ask_all(options, ends, Path(folder))
    rows = [json.loads(line) for line in options.rows.read_text("utf-8").splitlines()]
    report = summary(rows)
    file = options.out / f"readers-{date.today()}"
    kept = {"command": _command(options), "model": rows[0]["model"], "report": report, "rows": rows}
    file.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(_command(options), report), encoding="utf-8")


def ask_all(options: argparse.Namespace, ends: float, folder: Path) -> None:
    """Asks what has no row yet, document by document so that an early end leaves a fair sample.

    Within a document a reader answers all its questions before the next reader begins, so that each
    has the prefix cache that it would have in use.
    """
    settings = Settings()
    model, embedder = Kept(open_model(settings)), open_embedder(settings)
    known = set()
    if options.rows.exists():
        lines = options.rows.read_text("utf-8").splitlines()
        known = {tuple(json.loads(line)["key"]) for line in lines}
    with options.rows.open("a", encoding="utf-8") as file:
        for name in options.sets.split(","):
            sources, asked = load(
                name,
                documents=options.documents,
                questions=options.questions,
                words=range(options.least_words, options.words + 1),
                strangers=options.strangers,
            )
            with Library(folder / name, model=model, embedder=embedder) as library:
                ids = {
                    key: library.add(source.text.encode(), name=f"{key}.md").id
                    for key, source in sources.items()
                }
                titles(library, ids, sources)
                readers = options.readers.split(",")
                for _, some in groupby(asked, lambda each: each.document):
                    for reader, question in product(readers, list(some)):
                        key = (name, question.id, reader, options.budget)
                        if key in known or time.monotonic() > ends:
                            continue
                        row = ask(library, model, ids[question.document], question, reader, options)
                        file.write(json.dumps({"key": key, **row}) + "\n")
                        file.flush()
                        print(*key[:3], row["said"][:60], f"{row['seconds']:.0f} s", flush=True)


def titles(library: Library, ids: dict[str, str], sources: dict[str, Source]) -> None:
    for key, document in ids.items():
        library.rename(document, sources[key].title)


class Kept:
    """A model that a library does not close, since the next library goes on with it.

    Attributes:
        prompt: The text of the last prompt: what lay before the model when it answered.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.prompt = ""

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def _seen(self, messages: Sequence[Message]) -> None:
        self.prompt = "\n\n".join(message.content for message in messages)

    def complete(self, messages: Sequence[Message], **options: Any) -> Completion:
        """As the model's."""
        self._seen(messages)
        return self._model.complete(messages, **options)

    def stream(self, messages: Sequence[Message], **options: Any) -> Iterator[Any]:
        """As the model's."""
        self._seen(messages)
        return self._model.stream(messages, **options)

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Any:
        """As the model's."""
        self._seen(messages)
        return self._model.choose(messages, options)

    def close(self) -> None:
        """Nothing."""


def ask(
    library: Library,
    model: "Kept",
    document: str,
    question: Asked,
    reader: str,
    options: argparse.Namespace,
) -> dict:
    """One row: what was said, how good it is, what it cost."""
    whole, error, steps = library.document(document), "", []
    text, begun = whole.text, time.perf_counter()
    answer = Answer("", (), found=False)
    try:
        if reader == "closed-book":
            answer = closed_book(model, question)
        elif reader in PEERS:
            answer = peer(library, model).answer(reader, question.text, whole)
        else:
            stream = library.read(
                question.text,
                documents=[document],
                reader=reader,
                budget_tokens=options.budget or None,
            )
            for step in stream:
                steps.append(type(step).__name__)
                if isinstance(step, Answer):
                    answer = step
    except ModelError as failure:
        error = str(failure)
    seconds = time.perf_counter() - begun
    row = {
        "set": question.set,
        "question": question.text,
        "reader": reader,
        "model": model.name,
        "said": answer.text,
        "found": answer.found,
        "answerable": bool(question.answers),
        "seconds": round(seconds, 2),
        **asdict(answer.usage),
        "steps": list(dict.fromkeys(steps)),
        "error": error,
        "invented": sum(locate(c.quote, text) is None for c in answer.citations),
        "cited": cited(text, question, answer),
        "read": read(model.prompt, text, question),
    }
    if question.answers:
        row["f1"] = round(token_f1(answer.text, question.answers) if answer.found else 0.0, 4)
        row["holds"] = answer.found and holds(answer.text, question.answers)
    if question.options:
        row["right"] = choose(model, question, answer) == question.right
    return row


@cache
def peer(library: Library, model: LanguageModel) -> Any:
    """LlamaIndex, where it is installed."""
    from llama_index_peer import LlamaIndexPeer

    return LlamaIndexPeer(model, library.embedder)


def closed_book(model: LanguageModel, question: Asked) -> Answer:
    prompt = "Answer the question in one short sentence."
    messages = [Message("system", prompt), Message("user", question.text)]
    completion = model.complete(messages, max_tokens=96)
    return Answer(completion.text.strip(), (), found=True, usage=completion.usage)


def choose(model: LanguageModel, question: Asked, answer: Answer) -> int:
    """The option that the model finds likeliest, given what the reader found and cites."""
    found = "\n".join(c.quote for c in (*answer.citations, *answer.nearest))
    listed = "\n".join(f"{LETTERS[i]}. {o}" for i, o in enumerate(question.options))
    messages = [
        Message("system", "Choose the right option. Reply with its letter alone."),
        Message(
            "user",
            f"Notes:\n{answer.text if answer.found else ''}\n{found}\n\n"
            f"Question: {question.text}\n{listed}",
        ),
    ]
    return model.choose(messages, LETTERS[: len(question.options)]).best


def cited(text: str, question: Asked, answer: Answer) -> bool | None:
    """Whether some citation touches some evidence; None where the set names no evidence."""
    places = [place for place in (locate(e, text) for e in question.evidence) if place]
    if not places:
        return None
    return any(
        c.span.start < p.end and p.start < c.span.end for c in answer.citations for p in places
    )


def read(prompt: str, text: str, question: Asked) -> bool | None:
    """Whether the wording of some evidence stood in the last prompt, so before the answer."""
    some = [e for e in question.evidence if locate(e, text)]
    return any(locate(e, prompt) for e in some) if some else None


def summary(rows: list[dict]) -> list[dict]:
    """A line a set and reader, over the questions that every reader of the set has answered."""
    report = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        readers = list(dict.fromkeys(row["reader"] for row in mine))
        asked: dict[str, set[str]] = {r: set() for r in readers}
        for row in mine:
            asked[row["reader"]].add(row["key"][1])
        common = set.intersection(*asked.values())
        for reader in readers:
            some = [r for r in mine if r["reader"] == reader and r["key"][1] in common]
            if some:
                report.append({"set": name, "reader": reader, **measures(some)})
    return report


def measures(rows: list[dict]) -> dict:
    yes, no = [r for r in rows if r["answerable"]], [r for r in rows if not r["answerable"]]
    found = {
        "questions": len(yes),
        "right": share(r["right"] for r in yes if "right" in r),
        "f1": share(r["f1"] for r in yes),
        "holds": share(r["holds"] for r in yes),
        "evidence read whole": share(r["read"] for r in yes if r.get("read") is not None),
        "evidence cited": share(r["cited"] for r in yes if r["cited"] is not None),
        "refused": share(not r["found"] for r in yes),
        "strangers": len(no),
        "strangers refused": share(not r["found"] for r in no),
        "invented": sum(r["invented"] for r in rows),
        "errors": sum(bool(r["error"]) for r in rows),
    }
    for what in ("prompt_tokens", "cached_tokens", "completion_tokens", "calls", "seconds"):
        found[what] = round(float(np.mean([r[what] for r in rows])), 1)
    return found


def share(values: Iterator[float]) -> list[float] | None:
    """Mean in per cent and its 95 % interval by the bootstrap."""
    some = np.array(list(values), dtype=float)
    if not len(some):
        return None
    drawn = np.random.default_rng(0).choice(some, (2_000, len(some))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return [round(100 * float(v), 1) for v in (some.mean(), low, high)]


def table(command: str, report: list[dict]) -> str:
    """The report as Markdown."""
    lines = [f"# Readers, {date.today()}", "", f"`{command}`", ""]
    columns = [name for name in report[0] if name not in ("set", "reader")]
    for name in dict.fromkeys(row["set"] for row in report):
        lines += [f"## {name}", "", "| reader | " + " | ".join(columns) + " |"]
        lines += ["|" + "---|" * (len(columns) + 1)]
        for row in (row for row in report if row["set"] == name):
            cells = [
                "" if v is None else f"{v[0]} ({v[1]} to {v[2]})" if isinstance(v, list) else str(v)
                for v in (row[column] for column in columns)
            ]
            lines.append(f"| {row['reader']} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append("Means over questions; shares in % with their 95 % interval (bootstrap).")
    return "\n".join(lines) + "\n"


def _command(options: argparse.Namespace) -> str:
    shown = ("readers", "sets", "documents", "questions", "strangers", "words", "budget")
    least = f" --least-words {options.least_words}" if options.least_words else ""
    return (
        "python bench/readers.py " + " ".join(f"--{n} {getattr(options, n)}" for n in shown) + least
    )


if __name__ == "__main__":
    main()
