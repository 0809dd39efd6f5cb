r"""Rows an hour of a batch against a loop that asks one question after the other as they arrive.

    python bench/batch.py --work FOLDER [--documents 50] [--questions 500] [--reader full]
                          [--model NAME or URL] [--minutes 0]

The same model, library, questions and reader, in one run. The documents are whole: stories and
contracts of the question sets under ``$GISTREE_SHARED``, those nearest to ``--words``. Their
questions arrive shuffled over the documents. The loop is ``library.ask`` row by row; the batch is
``library.batch``. Each begins with a library and a model opened anew, so that neither finds the
other's prompts in the cache.

An arm ends when every row is answered, or after ``--minutes``. What it has done lies in the work
folder: the same command goes on where it was ended. Where an arm was cut short the report says
``whole: false``, and it favours the batch: the loop's first rows are the first about most
documents, and none of those can be in the cache.

Reported: rows an hour, share of the time in which no request was before the model, share of prompt
tokens that were cached, rows at a time at the end, and whether both found the same answers, over
the rows that both had. A server keeps its prefix cache from one arm to the next: start it anew
between ``--arm loop`` and ``--arm batch``; whichever comes second writes the report.

How long it takes on two cores, roughly reckoned from the pace of prompts and replies:

    embedded   python bench/batch.py --work /tmp/b-tiny --model smollm2-135m-instruct     80 minutes
    vLLM       gistree serve /path/to/smollm2 --port 8000 &
               python bench/batch.py --work /tmp/b-vllm --model http://127.0.0.1:8000 --arm loop
               (the server anew, then the same with --arm batch)                          30 minutes
    a try      python bench/batch.py --work /tmp/b-try --model smollm2-135m-instruct \
                   --documents 5 --questions 20 --words 500                                2 minutes

Five documents fit the embedded model's prompt cache (1 GiB), so there the loop finds as much in it
as the batch does; fifty do not.
"""

import argparse
import json
import random
import threading
import time
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from evalsets import ROOT, SHARED

from app.batch.batch import Batch
from app.batch.run import RowDone
from app.library import Library
from app.models import open_model
from app.settings import Settings
from serving.model import LanguageModel, Usage, num_at_once, overloaded_at

SETS = ("fairytaleqa_val", "contractnli_dev")


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

    @property
    def num_at_once(self):
        """As the model's."""
        return num_at_once(self._model)

    @property
    def overloaded_at(self):
        """As the model's."""
        return overloaded_at(self._model)

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
    each = -(-questions // documents)
    told = []
    for name in SETS:
        for line in (SHARED / "eval" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            if len(document["questions"]) >= each:
                told.append(document)
    told.sort(key=lambda document: abs(len(document["text"].split()) - words))
    texts, rows = {}, []
    for number, document in enumerate(told[:documents]):
        name = f"document-{number}.txt"
        texts[name] = document["text"]
        rows += [
            {"document": name, "question": asked["question"]}
            for asked in document["questions"][:each]
        ]
    random.Random(0).shuffle(rows)
    return texts, [{"id": str(n), **row} for n, row in enumerate(rows[:questions])]


class Log:
    """One arm's rows on the disk, each with the time and the model's busy time when it was done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows = [json.loads(line) for line in lines]
        self.run = 1 + max((row["run"] for row in self.rows), default=-1)

    def add(self, **row) -> None:
        """Keeps a row."""
        row["run"] = self.run
        self.rows.append(row)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def last(self, key: str) -> float:
        """The sum over runs of what the last row of each says."""
        return sum({row["run"]: row[key] for row in self.rows}.values())

    def summary(self) -> dict:
        """What is reported of the arm."""
        seconds = max(self.last("seconds"), 1e-9)
        prompt = sum(row["prompt_tokens"] for row in self.rows)
        return {
            "rows": len(self.rows),
            "rows_an_hour": round(3600 * len(self.rows) / seconds, 1),
            "seconds": round(seconds, 1),
            "model_idle_share": round(1 - self.last("busy_s") / seconds, 4),
            "cached_share": round(
                sum(row["cached_tokens"] for row in self.rows) / max(prompt, 1), 3
            ),
            "prompt_tokens": prompt,
            "completion_tokens": sum(row["completion_tokens"] for row in self.rows),
            "at_a_time_at_the_end": self.rows[-1]["at_a_time"] if self.rows else 0,
        }


def one_by_one(library: Library, rows: list[dict], reader: str, done: set[str]):
    """The naive loop; yields id, found, usage and rows at a time."""
    for row in rows:
        if row["id"] not in done:
            answer = library.ask(row["question"], documents=[row["document"]], reader=reader)
            yield row["id"], answer.found, answer.usage, 1


def as_batch(library: Library, source: Path, out: Path, reader: str):
    """The batch; likewise."""
    with Batch(library, source, out, reader=reader) as batch:
        runner = batch._runner()
        try:
            for event in runner.run(batch._rows()):
                if isinstance(event, RowDone):
                    yield event.row.id, event.found, event.usage, runner.throttle.limit
        finally:
            runner._stop.set()


def arm(log: Log, settings: Settings, seconds: float, work) -> None:
    """Does as much of one arm as its time allows."""
    left = seconds - log.last("seconds") if seconds else float("inf")
    if left <= 0:
        return
    model = Watched(open_model(settings))
    with Library(settings=settings, model=model) as library:
        library.search("warm")
        started = time.perf_counter()
        answers = work(library)
        for name, found, usage, at_a_time in answers:
            log.add(
                id=name,
                found=found,
                seconds=time.perf_counter() - started,
                busy_s=model.busy_s,
                at_a_time=at_a_time,
                **tokens(usage),
            )
            if time.perf_counter() - started > left:
                break
        answers.close()


def tokens(usage: Usage) -> dict:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder; kept, to go on from")
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--words", type=int, default=1_500, help="documents nearest to it")
    parser.add_argument("--reader", default="full")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct")
    parser.add_argument("--minutes", type=float, default=0.0, help="of each arm; 0: all rows")
    parser.add_argument("--arm", choices=["loop", "batch"], help="only this one; else both")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    texts, rows = rows_of(options.documents, options.questions, options.words)
    work = options.work
    work.mkdir(parents=True, exist_ok=True)
    settings = Settings(library=str(work / "library"), model=options.model)
    with Library(settings=settings) as library:
        for name, text in texts.items():
            library.add(text.encode(), name=name)
    source, out = work / "questions.jsonl", work / "answers.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    loop, batch = Log(work / "loop.jsonl"), Log(work / "batch.jsonl")
    if options.arm != "batch":
        done = {row["id"] for row in loop.rows}
        seconds = options.minutes * 60
        arm(loop, settings, seconds, lambda lib: one_by_one(lib, rows, options.reader, done))
    if options.arm != "loop":
        seconds = options.minutes * 60
        arm(batch, settings, seconds, lambda lib: as_batch(lib, source, out, options.reader))
    if not (loop.rows and batch.rows):
        return
    one, many = ({row["id"]: row["found"] for row in log.rows} for log in (loop, batch))
    both = one.keys() & many.keys()
    report = {
        "command": f"python bench/batch.py --documents {options.documents} "
        f"--questions {options.questions} --words {options.words} --reader {options.reader} "
        f"--model {options.model} --minutes {options.minutes:g}",
        "words_of_documents": round(sum(len(t.split()) for t in texts.values()) / len(texts)),
        "whole": len(loop.rows) == len(batch.rows) == len(rows),
        "one by one": loop.summary(),
        "batch": batch.summary(),
        "rows_of_both": len(both),
        "same_found": round(sum(one[key] == many[key] for key in both) / max(len(both), 1), 3),
    }
    report["times_faster"] = round(
        report["batch"]["rows_an_hour"] / report["one by one"]["rows_an_hour"], 2
    )
    text = json.dumps(report, indent=1) + "\n"
    print(text, end="")
    kind = "server" if "://" in options.model else options.model
    (options.out / f"batch-{date.today()}-{options.reader}-{kind}.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
