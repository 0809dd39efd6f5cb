"""Rows an hour of a batch against a loop that asks one question after the other as they arrive.

    python bench/batch.py [--documents 5] [--questions 20] [--reader full] [--model NAME or URL]

The same model, library, questions and reader, in one run. Questions arrive in turn about one
document after the other, as in a file that was sorted by question. The loop is ``library.ask``
row by row; the batch is ``library.batch``. Each begins with a library opened anew, so that neither
finds the other's prompts in the cache. Reported: rows an hour, share of the time in which no
request was before the model, share of prompt tokens that were cached, and whether both found the
same answers.
"""

import argparse
import json
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from evalsets import ROOT, SHARED

from app.library import Library
from app.models import open_model
from app.settings import Settings
from serving.model import LanguageModel, Usage


class Watched:
    """A model that knows how long nobody asked it anything."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._asking = 0
        self._since = 0.0
        self.busy_s = 0.0

    def __getattr__(self, name):
        return getattr(self._model, name)

    @contextmanager
    def _watching(self):
        with self._lock:
            if not self._asking:
                self._since = time.perf_counter()
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1
                if not self._asking:
                    self.busy_s += time.perf_counter() - self._since

    def stream(self, *args, **options):
        """As the model's."""
        with self._watching():
            return (yield from self._model.stream(*args, **options))

    def complete(self, *args, **options):
        """As the model's."""
        with self._watching():
            return self._model.complete(*args, **options)

    def choose(self, *args, **options):
        """As the model's."""
        with self._watching():
            return self._model.choose(*args, **options)


def rows_of(documents: int, questions: int, words: int) -> tuple[dict[str, str], list[dict]]:
    """Texts by name, and questions in the order in which they arrive."""
    texts, asked = {}, []
    file = SHARED / "eval" / "fairytaleqa_val.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines()[:documents]:
        document = json.loads(line)
        name = f"tale-{len(texts)}.txt"
        texts[name] = " ".join(document["text"].split()[:words])
        asked.append([(name, q["question"]) for q in document["questions"]])
    rows = [
        {"document": name, "question": question}
        for turn in zip(*asked, strict=False)
        for name, question in turn
    ]
    return texts, [{"id": str(n), **row} for n, row in enumerate(rows[:questions])]


def measured(place: Path, settings: Settings, work) -> dict:
    """What ``work`` (given a library; returns answers by id, and usage) took."""
    model = Watched(open_model(settings))
    with Library(place, settings=settings, model=model) as library:
        library.search("warm")
        started = time.perf_counter()
        found, usage = work(library)
        seconds = time.perf_counter() - started
    return {
        "rows_an_hour": round(3600 * len(found) / seconds, 1),
        "seconds": round(seconds, 1),
        "model_idle_share": round(1 - model.busy_s / seconds, 4),
        "cached_share": round(usage.cached_share, 3),
        "prompt_tokens": usage.prompt_tokens,
        "found": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=5)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--words", type=int, default=400, help="of each document, at most")
    parser.add_argument("--reader", default="full")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    texts, rows = rows_of(options.documents, options.questions, options.words)
    with tempfile.TemporaryDirectory(prefix="gistree-bench-") as name:
        folder = Path(name)
        settings = Settings(library=str(folder / "library"), model=options.model)
        with Library(settings=settings) as library:
            for title, text in texts.items():
                library.add(text.encode(), name=title)
        source, out = folder / "questions.jsonl", folder / "answers.jsonl"
        source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

        def loop(library):
            found, usage = {}, Usage()
            for row in rows:
                answer = library.ask(
                    row["question"], documents=[row["document"]], reader=options.reader
                )
                found[row["id"]] = answer.found
                usage += answer.usage
            return found, usage

        def batch(library):
            totals = library.batch(source, out, reader=options.reader)
            lines = out.read_text(encoding="utf-8").splitlines()
            return {r["id"]: r.get("found") for r in map(json.loads, lines)}, totals.usage

        report = {
            "one by one": measured(folder / "library", settings, loop),
            "batch": measured(folder / "library", settings, batch),
        }
    one, many = (report[way].pop("found") for way in report)
    report["same_found"] = round(sum(one[key] == many.get(key) for key in one) / len(one), 3)
    report["times_faster"] = round(
        report["batch"]["rows_an_hour"] / report["one by one"]["rows_an_hour"], 2
    )
    print(json.dumps(report, indent=1))
    command = (
        f"python bench/batch.py --documents {options.documents} --questions {options.questions} "
        f"--words {options.words} --reader {options.reader} --model {options.model}"
    )
    report = {"command": command, **report}
    file = options.out / f"batch-{date.today()}.json"
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
