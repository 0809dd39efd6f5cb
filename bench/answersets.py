"""Questions with known answers, sampled from the public sets: what a reader should say."""

import json
import re
import string
from collections import Counter
from dataclasses import dataclass

import numpy as np
from evalsets import SHARED

LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Asked:
    """A question and what is known of its answer.

    Attributes:
        answers: Wordings that count as right; empty where the document does not hold one.
        options: Of a multiple choice.
        right: Place of the right option.
        evidence: Texts in the document that bear the answer out; empty where the set has none.
    """

    id: str
    set: str
    document: str
    text: str
    answers: tuple[str, ...]
    options: tuple[str, ...] = ()
    right: int = -1
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A document of a set."""

    id: str
    title: str
    text: str


def load(
    name: str, *, documents: int, questions: int, words: range, strangers: int, seed: int = 0
) -> tuple[dict[str, Source], list[Asked]]:
    """Sampled documents and questions.

    Args:
        name: Of the set.
        documents: Most documents.
        questions: Most questions that have an answer, spread evenly over the documents.
        words: Lengths of the documents that are taken.
        strangers: Questions of one document that are asked of another, where nothing answers them.
        seed: Of the sample.
    """
    with (SHARED / "eval" / f"{name}.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    random = np.random.default_rng(seed)
    rows = [rows[i] for i in random.permutation(len(rows))]
    rows = [row for row in rows if len(row["text"].split()) in words][:documents]
    sources = {row["id"]: Source(row["id"], row["title"], row["text"]) for row in rows}
    known = [_asked(name, row, question) for row in rows for question in row["questions"]]
    per_document: dict[str, list[Asked]] = {}
    for place in random.permutation(len(known)):
        per_document.setdefault(known[place].document, []).append(known[place])
    taken: list[Asked] = []
    while len(taken) < questions and any(per_document.values()):
        taken += [rest.pop() for rest in per_document.values() if rest][: questions - len(taken)]
    others = [
        Asked(
            f"{each.id}@{_next(sources, each.document)}",
            name,
            _next(sources, each.document),
            each.text,
            (),
        )
        for each in taken
        if len(sources) > 1 and each.answers and not each.options
    ][:strangers]
    return sources, sorted([*taken, *others], key=lambda each: (each.document, each.id))


def _next(sources: dict[str, Source], document: str) -> str:
    keys = list(sources)
    return keys[(keys.index(document) + 1) % len(keys)]


def _asked(name: str, row: dict, question: dict) -> Asked:
    answers = question.get("answers") or [question.get("answer_text") or question.get("answer")]
    absent = bool(question.get("unanswerable"))
    options = tuple(question.get("options") or ())
    return Asked(
        id=question["id"],
        set=name,
        document=row["id"],
        text=question["question"],
        answers=() if absent else tuple(str(answer) for answer in answers if answer),
        options=options,
        right=LETTERS.index(question["answer"]) if options else -1,
        evidence=tuple(e["text"] for e in question.get("evidence") or ()),
    )


def words(text: str) -> list[str]:
    """Words as SQuAD's scorer compares them: lower case, without articles and punctuation."""
    kept = re.sub(r"[^\w\s]", " ", text.lower())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def token_f1(said: str, answers: tuple[str, ...]) -> float:
    """Token-F1 of SQuAD (arXiv:1606.05250) against the nearest wording, 0 to 1."""

    def one(gold: str) -> float:
        a, b = words(said), words(gold)
        shared = sum((Counter(a) & Counter(b)).values())
        return 2 * shared / (len(a) + len(b)) if shared else 0.0

    return max((one(answer) for answer in answers), default=0.0)


def holds(said: str, answers: tuple[str, ...]) -> bool:
    """Whether a wording stands in what was said, word for word."""
    text = f" {' '.join(words(said))} "
    return any(f" {' '.join(words(answer))} " in text for answer in answers)
