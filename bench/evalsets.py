"""The public question sets with gold evidence, sampled, in halves that share no document."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memory.document import Document, Page, Section, Span

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GISTREE_SHARED", ROOT.parent / "shared"))
SETS = (
    *("qmsum_val", "contractnli_dev", "fairytaleqa_val", "hotpotqa", "bamboo_paperqa_4k"),
    *("leval_cuad", "litqa2", "needles", "xquad_en", "xquad_de", "xquad_ru", "xquad_zh"),
    *("xquad_ar", "xquad_hi", "xquad_th"),
)


@dataclass(frozen=True)
class Question:
    """A question, the document it is asked of, and the places that answer it (none: none do)."""

    id: str
    text: str
    document: Document
    evidence: tuple[Span, ...]


def load(
    name: str, half: str, questions: int, *, seed: int = 0, chars: int = 0
) -> tuple[list[Question], list[Question]]:
    """Sampled questions with evidence, and without any, of one half of a set's documents.

    Args:
        name: Of the set.
        half: "tune" or "held-out"; defaults were set on the first, figures come from the second.
        questions: Most questions of either kind.
        seed: Of the halves and the sample.
        chars: Documents are taken by chance until they have so many characters together, but two
            at least, and none of three times as many alone; 0 takes all.
    """
    with (SHARED / "eval" / f"{name}.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    random = np.random.default_rng(seed)
    order = random.permutation(len(rows))
    tune = set(order[: len(rows) // 2].tolist())
    mine = [i for i in order.tolist() if (i in tune) == (half == "tune")]
    total, taken = 0, set()
    for number in mine:
        if chars and len(rows[number]["text"]) > 3 * chars:
            continue
        if not chars or len(taken) < 2 or total + len(rows[number]["text"]) <= chars:
            taken.add(number)
            total += len(rows[number]["text"])
    answerable, unanswerable = [], []
    for row in (row for number, row in enumerate(rows) if number in taken):
        document = _document(name, row)
        for each in row["questions"]:
            spans = [e for e in each.get("evidence") or [] if e["start"] is not None]
            evidence = tuple(Span(e["start"], e["end"]) for e in spans)
            question = Question(each["id"], each["question"], document, evidence)
            if evidence:
                answerable.append(question)
            elif not each.get("evidence"):
                unanswerable.append(question)

    def sample(some: list[Question]) -> list[Question]:
        return [some[i] for i in sorted(random.permutation(len(some))[:questions])]

    return sample(answerable), sample(unanswerable)


def _document(name: str, row: dict) -> Document:
    text = row["text"]
    heads = list(re.finditer(r"^(#{1,6}) +(.+)$", text, re.MULTILINE))
    sections = []
    for place, head in enumerate(heads):
        level = len(head.group(1))
        ends = (h.start() for h in heads[place + 1 :] if len(h.group(1)) <= level)
        span = Span(head.start(), next(ends, len(text)))
        sections.append(Section(head.group(2).strip(), level, span))
    spans = row.get("pages") or [[0, len(text)]]
    pages = [Page(i, "", Span(start, end)) for i, (start, end) in enumerate(spans)]
    return Document(
        id=f"{name}/{row['id']}",
        name=row["title"],
        title=row["title"],
        media_type="text/markdown",
        text=text,
        pages=pages,
        sections=sections,
        paged="pages" in row,
        language=row.get("lang", "en"),
    )
