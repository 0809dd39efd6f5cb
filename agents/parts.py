"""The parts in which a reader goes through documents from beginning to end, or through some of it.

A whole book may take a small model an hour. Where only so many parts may be read, they are those
in which the search finds most, and others spread evenly, so that no stretch goes unseen.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agents.answer import place
from agents.desk import Desk
from agents.steps import LookedUp, Step
from memory.chunker import chunk
from memory.document import Document, Span
from retrieval.assemble import short_title
from retrieval.types import Passage

_SAMPLES = 3
_SAMPLE_CHARS = 1_000
_MOST_DOCUMENTS = 64  # of a larger corpus only those that the search finds are gone through
_HEADROOM = 1.1  # a part may be denser than the samples


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document that is read at once.

    Attributes:
        document_id: Whose it is.
        span: Whole sentences of its text.
        found: How well the search's best passage in it does, 0.0 where it has none.
    """

    document_id: str
    span: Span
    found: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read, in document order.

    Attributes:
        parts: Those to read.
        left_out: How many more parts the documents that are read have.
        other_documents: How many documents are not read at all.
    """

    parts: Sequence[Part]
    left_out: int
    other_documents: int = 0

    def steps(self, desk: Desk) -> Iterator[Step]:
        """What is said of it before reading: nothing where all is read."""
        if not self.left_out and not self.other_documents:
            return
        total = len(self.parts) + self.left_out
        why = f"{len(self.parts):,} of {total:,} parts, where a search finds most and evenly spread"
        if self.other_documents:
            why += f"; {self.other_documents:,} documents left out, where the search found less"
        places = tuple(place(desk.document(p.document_id), p.span) for p in self.parts)
        yield LookedUp(places, why)


def plan(
    desk: Desk, passages: Sequence[Passage], *, part_tokens: int = 0, max_parts: int = 0
) -> Plan:
    """Parts of the desk's documents.

    Args:
        desk: What lies before the reader.
        passages: What a search for the question found, the best first.
        part_tokens: About how long a part is, by the model's count; 0 takes the desk's budget.
        max_parts: Most parts that are read; 0 reads all.
    """
    keys: Sequence[str] = desk.documents
    if len(keys) > _MOST_DOCUMENTS:
        found = list(dict.fromkeys(p.document_id for p in passages))[:_MOST_DOCUMENTS]
        keys = [key for key in desk.documents if key in found]
    most = min(part_tokens or desk.budget_tokens, desk.model.context_window // 2)
    parts = [part for key in keys for part in _parts(desk, desk.document(key), max(most, 1))]
    parts = [_with_score(part, passages) for part in parts]
    others = len(desk.documents) - len(keys)
    if not max_parts or len(parts) <= max_parts:
        return Plan(parts, 0, others)
    chosen = _chosen(parts, max_parts)
    return Plan([parts[i] for i in sorted(chosen)], len(parts) - len(chosen), others)


def marked(desk: Desk, part: Part) -> str:
    """A part's text behind a mark with its document and section, as a prompt shows it."""
    document = desk.document(part.document_id)
    titles = [document.title, *document.section_path(part.span.start)]
    mark = ", ".join(dict.fromkeys(map(short_title, titles)))
    return f"[{mark}]\n{part.span.of(document.text)}"


def named(desk: Desk, part: Part) -> str:
    """Where a part is, in few words; with the document where there are several."""
    document = desk.document(part.document_id)
    where = place(document, part.span)
    pages = replace(where, section=tuple(map(short_title, where.section)))
    return f"{short_title(document.title)}, {pages}" if len(desk.documents) > 1 else str(pages)


def document_tokens(desk: Desk, document: Document) -> int:
    """About how many tokens a document has, by the model's count of some stretches of it."""
    return math.ceil(len(document.text) * _tokens_per_char(desk, document))


def _parts(desk: Desk, document: Document, part_tokens: int) -> list[Part]:
    rate = _tokens_per_char(desk, document) * _HEADROOM
    spans = chunk(
        document,
        count_tokens=lambda texts: [math.ceil(len(text) * rate) for text in texts],
        max_tokens=part_tokens,
    )
    return [Part(document.id, span) for span in spans]


def _tokens_per_char(desk: Desk, document: Document) -> float:
    """By samples: counting every sentence would take a server thousands of requests."""
    text = document.text
    if len(text) <= _SAMPLES * _SAMPLE_CHARS:
        samples = [text]
    else:
        step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
        samples = [text[i * step : i * step + _SAMPLE_CHARS] for i in range(_SAMPLES)]
    return max(desk.model.count_tokens(each) / max(len(each), 1) for each in samples) or 0.25


def _with_score(part: Part, passages: Sequence[Passage]) -> Part:
    best = max(
        (
            passage.score
            for passage in passages
            if passage.document_id == part.document_id and passage.span.overlaps(part.span)
        ),
        default=0.0,
    )
    return replace(part, found=best)


def _chosen(parts: Sequence[Part], most: int) -> set[int]:
    """Positions of the parts to read: two of three by the search, the others spread evenly."""
    ranked = sorted(
        (i for i, part in enumerate(parts) if part.found), key=lambda i: -parts[i].found
    )
    chosen = set(ranked[: math.ceil(most * 2 / 3)])
    free = [i for i in range(len(parts)) if i not in chosen]
    more = min(most - len(chosen), len(free))
    return chosen | {free[(2 * j + 1) * len(free) // (2 * more)] for j in range(more)}
