"""Passages to one context: in document order, under a token budget (OP-RAG, arXiv:2409.01666)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.document import Document, Span
from memory.sentences import sentences
from retrieval.errors import BudgetTooSmall
from retrieval.types import Passage

Order = Literal["document", "relevance", "relevance-last"]
"""document: as a reader meets them; relevance: best first; relevance-last: best at the end."""

GAP = " … "
MARK_TOKENS = 24  # about what a mark costs; only a guess that saves counting, never a promise
TITLE_CHARS = 60
MISSES = 8  # passages in a row that do not fit before the context counts as full


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text that may go into a context: a passage, or what a pruner left of it.

    Attributes:
        document_id: Whose it is.
        spans: Parts of the document's text, ascending, not overlapping; at least one.
        score: Higher is better.
    """

    document_id: str
    spans: tuple[Span, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a document as it stands in a context.

    Attributes:
        document_id: Whose it is.
        spans: Its parts, ascending; what lies between two of them was left out.
        score: Of its best excerpt.
        cut: Whether its end was cut off at a sentence to fit the budget.
    """

    document_id: str
    spans: tuple[Span, ...]
    score: float
    cut: bool = False

    @property
    def hull(self) -> Span:
        """From its first character to its last."""
        return Span(self.spans[0].start, self.spans[-1].end)


@dataclass(frozen=True, slots=True)
class Context:
    """What a model is given to read.

    Attributes:
        text: The pieces with their marks.
        pieces: In the order of the text.
        tokens: Of ``text``, by the model's own tokenizer.
        left_out: What did not fit, best first; the rest of a passage that was cut counts too.
    """

    text: str
    pieces: tuple[Piece, ...]
    tokens: int
    left_out: tuple[Excerpt, ...]


def excerpts(passages: Sequence[Passage], kept: Sequence[Sequence[Span]]) -> list[Excerpt]:
    """Passages with what a pruner kept of them; those of which nothing is left are dropped.

    Args:
        passages: As they were found.
        kept: For each passage, spans within that passage's text, as ``Pruner.prune`` returns them.
    """
    return [
        Excerpt(
            passage.document_id,
            tuple(Span(passage.span.start + s.start, passage.span.start + s.end) for s in spans),
            passage.score,
        )
        for passage, spans in zip(passages, kept, strict=True)
        if spans
    ]


def assemble(
    offered: Iterable[Excerpt],
    documents: Mapping[str, Document],
    *,
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    order: Order = "document",
) -> Context:
    """The best excerpts that fit, neighbours merged, marked with document, page and section.

    Documents stand in the order of ``documents``, whatever their scores, so that prompts over the
    same library begin alike and a prefix cache finds them.

    Args:
        offered: Excerpts of any documents, in any order; they may overlap.
        documents: By id; holds at least those of the excerpts.
        budget_tokens: Most tokens of the text.
        count_tokens: The reading model's own count.
        order: How the pieces stand in the text.

    Raises:
        BudgetTooSmall: not even the first sentence of a good excerpt fits; says what would.
    """
    places = {document_id: place for place, document_id in enumerate(documents)}
    ranked = sorted(
        offered, key=lambda e: (-e.score, places[e.document_id], e.spans[0], e.spans[-1])
    )

    def render(chosen: Sequence[Piece]) -> tuple[str, list[Piece]]:
        pieces = _arrange(_merge(chosen, documents), places, order)
        return _text(pieces, documents), pieces

    def tokens_of(chosen: Sequence[Piece]) -> int:
        return count_tokens(render(chosen)[0])

    chosen: list[Piece] = []
    left_out: list[Excerpt] = []
    tokens, misses, full = 0, 0, False
    for excerpt in ranked:
        if full or misses == MISSES:
            left_out.append(excerpt)
            continue
        piece = Piece(excerpt.document_id, excerpt.spans, excerpt.score)
        text = documents[excerpt.document_id].text
        guess = tokens + MARK_TOKENS + sum(count_tokens(s.of(text)) + 2 for s in excerpt.spans)
        if guess > budget_tokens:
            guess = tokens_of([*chosen, piece])
        if guess <= budget_tokens:
            chosen.append(piece)
            tokens, misses = guess, 0
            continue
        head, rest = _cut(piece, text, lambda head: tokens_of([*chosen, head]) <= budget_tokens)
        if head is not None:
            chosen.append(head)
            full = True
        else:
            misses += 1
        left_out.append(replace(excerpt, spans=rest))
    if ranked and not chosen:
        raise BudgetTooSmall(budget_tokens, _needed(ranked, documents, count_tokens))
    body, pieces = render(chosen)
    while (tokens := count_tokens(body)) > budget_tokens:  # the guesses were too low, which is rare
        dropped = chosen.pop()
        left_out.insert(0, Excerpt(dropped.document_id, dropped.spans, dropped.score))
        body, pieces = render(chosen)
    return Context(body, tuple(pieces), tokens, tuple(left_out))


def _sentences(spans: Iterable[Span], text: str) -> list[Span]:
    """The spans cut at the ends of sentences."""
    return [
        Span(span.start + s.start, span.start + s.end)
        for span in spans
        for s in sentences(span.of(text))
    ]


def _cut(
    piece: Piece, text: str, fits: Callable[[Piece], bool]
) -> tuple[Piece | None, tuple[Span, ...]]:
    """As many leading sentences as fit, or None; and the spans of what is left."""
    parts = _sentences(piece.spans, text)
    low, high = 0, len(parts) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(replace(piece, spans=tuple(parts[:middle]), cut=True)):
            low = middle
        else:
            high = middle - 1
    if low == 0:
        return None, piece.spans
    return replace(piece, spans=tuple(parts[:low]), cut=True), tuple(parts[low:])


def _needed(
    ranked: Sequence[Excerpt],
    documents: Mapping[str, Document],
    count_tokens: Callable[[str], int],
) -> int:
    """Tokens of the smallest context that begins any of the excerpts."""
    heads = []
    for excerpt in ranked[:MISSES]:
        document = documents[excerpt.document_id]
        first, *more = _sentences(excerpt.spans, document.text)
        heads.append(Piece(document.id, (first,), excerpt.score, cut=bool(more)))
    return min(count_tokens(_text([head], documents)) for head in heads)


def _touch(text: str, left: Span, right: Span) -> bool:
    """Whether nothing but white space lies between two spans, or they overlap."""
    return not text[left.end : right.start].strip()


def _merge(chosen: Sequence[Piece], documents: Mapping[str, Document]) -> list[Piece]:
    """Pieces whose hulls overlap or touch become one."""
    merged: list[Piece] = []
    for piece in sorted(chosen, key=lambda p: (p.document_id, p.hull)):
        last = merged[-1] if merged else None
        text = documents[piece.document_id].text
        if (
            last is None
            or last.document_id != piece.document_id
            or not _touch(text, last.hull, piece.hull)
        ):
            merged.append(replace(piece, spans=_union(piece.spans, text)))
            continue
        latest = max(last, piece, key=lambda p: p.hull.end)
        merged[-1] = Piece(
            piece.document_id,
            _union((*last.spans, *piece.spans), text),
            max(last.score, piece.score),
            latest.cut,
        )
    return merged


def _union(spans: Iterable[Span], text: str) -> tuple[Span, ...]:
    """Spans ascending, those that overlap or touch joined."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and _touch(text, joined[-1], span):
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


def _arrange(pieces: list[Piece], places: Mapping[str, int], order: Order) -> list[Piece]:
    if order == "document":
        return sorted(pieces, key=lambda p: (places[p.document_id], p.hull))
    return sorted(
        pieces,
        key=lambda p: (p.score if order == "relevance-last" else -p.score, places[p.document_id]),
    )


def _text(pieces: Sequence[Piece], documents: Mapping[str, Document]) -> str:
    """The pieces with a mark wherever document, page or section changes."""
    parts: list[str] = []
    before: tuple[str, str, str] | None = None
    for piece in pieces:
        document = documents[piece.document_id]
        here = (document.id, _pages(document, piece.hull), _section(document, piece.hull))
        mark = _mark(document, here, before)
        if mark:
            parts.append(f"\n\n{mark}\n" if parts else f"{mark}\n")
        else:
            parts.append(f"\n{GAP.strip()}\n")
        parts.append(_joined(piece, document.text))
        before = here
    return "".join(parts)


def _mark(
    document: Document, here: tuple[str, str, str], before: tuple[str, str, str] | None
) -> str:
    """What is new at this place: all of it in a new document, nothing where all is the same."""
    if before is None or before[0] != here[0]:
        words = [short_title(document.title or document.name), here[1], here[2]]
    else:
        words = [new for new, old in zip(here[1:], before[1:], strict=True) if new != old]
    words = [word for word in words if word]
    return f"[{', '.join(words)}]" if words else ""


def _pages(document: Document, hull: Span) -> str:
    if not document.paged:
        return ""
    first = document.page_at(hull.start)
    last = document.page_at(max(hull.end - 1, hull.start))
    first_label = first.label or str(first.index + 1)
    if last.index == first.index:
        return f"p. {first_label}"
    return f"pp. {first_label}–{last.label or last.index + 1}"


def _section(document: Document, hull: Span) -> str:
    path = document.section_path(hull.start)
    return short_title(path[-1]) if path else ""


def short_title(title: str) -> str:
    """A title on one short line, without the brackets that end a mark."""
    words = " ".join(title.replace("[", "(").replace("]", ")").split())
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"


def _joined(piece: Piece, text: str) -> str:
    body = GAP.join(span.of(text).strip() for span in piece.spans)
    return body + GAP.rstrip() if piece.cut else body
