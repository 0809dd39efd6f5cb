"""From notes made while reading to the basis of an answer: the notes, and the places noted."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from agents.answering import Basis
from agents.desk import Desk
from agents.parts import Part
from agents.passages import gather
from agents.steps import Step
from agents.support import Evidence, Supporter
from memory.document import Span
from memory.sentences import sentences
from retrieval.errors import BudgetTooSmall
from retrieval.types import Passage

_PLACES = 4  # sentences of a part that may bear a note out between them


@dataclass(frozen=True, slots=True)
class Note:
    """A note, and the parts of documents that it was made of.

    Attributes:
        text: As the final prompt shows it, on one line.
        parts: Where it comes from; at least one.
        score: How much it matters; higher is better.
    """

    text: str
    parts: Sequence[Part]
    score: float


def basis_of(
    desk: Desk,
    question: str,
    notes: Sequence[Note],
    nearest: Sequence[Passage],
    *,
    share: float,
) -> Generator[Step, None, Basis]:
    """Pruned and Assembled; returns the basis: excerpts of the places noted, then the notes.

    Args:
        desk: What lies before the reader.
        question: As it was asked.
        notes: In document order; at least one.
        nearest: What a search found, to show where nothing is.
        share: Of the budget that the notes may take.
    """
    kept = _fitting(desk, notes, share)
    left_out = f", {len(notes) - len(kept)} more left out" if len(kept) < len(notes) else ""
    head = f"[Notes made while reading{left_out}]"
    lines = "\n".join([head, *(f"- {note.text}" for note in kept)])
    room = max(1, desk.budget_tokens - desk.model.count_tokens(lines))
    parts: dict[Part, float] = {}
    for note in notes:
        for part in note.parts:
            parts[part] = max(note.score, parts.get(part, note.score))
    passages = [
        Passage(place, part.document_id, part.span, score)
        for place, (part, score) in enumerate(parts.items())
    ]
    passages.sort(key=lambda passage: -passage.score)
    try:
        basis = yield from gather(replace(desk, budget_tokens=room), question, passages)
        text = f"{basis.text}\n\n{lines}"
    except BudgetTooSmall:  # the notes alone have to do
        text = lines
    # The answer may rest on a note alone, so all of the noted parts may be cited.
    spans = [(part.document_id, part.span) for part in parts]
    return Basis(text, spans, nearest or passages)


def is_borne_out(desk: Desk, question: str, claim: str, part: Part) -> bool:
    """Whether the part's own words bear a note out: a weak model notes what it makes up, too."""
    text = part.span.of(desk.document(part.document_id).text)
    evidence = [
        Evidence(
            part.document_id, Span(part.span.start + s.start, part.span.start + s.end), s.of(text)
        )
        for s in sentences(text)
    ]
    return bool(Supporter(max_each=_PLACES).support(question, claim, evidence, desk.embedder))


def _fitting(desk: Desk, notes: Sequence[Note], share: float) -> list[Note]:
    """The notes that matter most, as many as fit, in their order."""
    room = desk.budget_tokens * share
    chosen: set[int] = set()
    for place in sorted(range(len(notes)), key=lambda i: -notes[i].score):
        room -= desk.model.count_tokens(notes[place].text) + 2
        if room < 0 and chosen:
            break
        chosen.add(place)
    return [note for place, note in enumerate(notes) if place in chosen]
