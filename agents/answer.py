"""The answer contract: what every reader ends with."""

from dataclasses import dataclass

from memory.document import Document, Span
from serving.model import Usage


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stretch of a document is, as a person looks it up.

    Attributes:
        document_id: Whose text it is.
        title: Of that document.
        span: In its canonical text.
        first_page: Number of the physical page where it begins, from 1, or None without pages.
        last_page: Where it ends.
        section: Titles of the sections around its beginning, the highest first.
        position: Where in the text it begins, 0.0 to 1.0.
    """

    document_id: str
    title: str
    span: Span
    first_page: int | None
    last_page: int | None
    section: tuple[str, ...]
    position: float

    def __str__(self) -> str:
        parts = list(self.section[-1:])
        if self.first_page is not None:
            one = self.first_page == self.last_page
            parts.append(
                f"page {self.first_page}" if one else f"pages {self.first_page} to {self.last_page}"
            )
        return ", ".join(parts) or f"{self.position:.0%} in"


def place(document: Document, span: Span) -> Place:
    """Where a span is."""
    paged = document.paged
    last = max(span.start, span.end - 1)
    return Place(
        document_id=document.id,
        title=document.title,
        span=span,
        first_page=document.page_at(span.start).index + 1 if paged else None,
        last_page=document.page_at(last).index + 1 if paged else None,
        section=document.section_path(span.start),
        position=span.start / max(len(document.text), 1),
    )


@dataclass(frozen=True, slots=True)
class Citation:
    """A place in a document that bears an answer out.

    Attributes:
        document_id: Whose text it is.
        title: Of that document.
        span: The place in its canonical text; ``quote`` is what stands there.
        quote: The words, taken from the source (never from the model).
        page: Number of the physical page, from 1, or None where the format has no pages.
        label: The number printed on that page, empty where unknown.
        section: Titles of the sections around it, the highest first.
        position: Where in the text it begins, 0.0 to 1.0.
        score: How well it supports the answer, 0.0 to 1.0.
    """

    document_id: str
    title: str
    span: Span
    quote: str
    page: int | None
    label: str
    section: tuple[str, ...]
    position: float
    score: float

    @property
    def place(self) -> str:
        """The place in words: page, printed number, chapter, or how far into the text."""
        parts = list(self.section[-2:])
        if self.page is not None:
            printed = f" (printed {self.label})" if self.label not in ("", str(self.page)) else ""
            parts.append(f"page {self.page}{printed}")
        parts.append(f"{self.position:.0%} in")
        return ", ".join(parts)


def cite(document: Document, span: Span, score: float) -> Citation:
    """A citation of a place in a document."""
    page = document.page_at(span.start) if document.paged else None
    return Citation(
        document_id=document.id,
        title=document.title,
        span=span,
        quote=span.of(document.text),
        page=page.index + 1 if page else None,
        label=page.label if page else "",
        section=document.section_path(span.start),
        position=span.start / max(len(document.text), 1),
        score=round(score, 3),
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer and what bears it out.

    Attributes:
        span: The sentence in the answer's text.
        citations: Positions in the answer's citations, the most telling first; none where nothing
            bears it out.
    """

    span: Span
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader found.

    Attributes:
        text: The answer, or in words that the document does not hold it.
        citations: The places that bear it out, the most telling first; every one was checked
            against the source. Empty where ``found`` is False.
        found: Whether the document holds the answer.
        nearest: Where ``found`` is False, the passages nearest to the question.
        usage: Tokens spent, all calls together.
        reader: Which reader it was.
        model: Which language model it was.
        seconds: From question to answer.
        unsupported: Sentences of ``text`` that no passage bears out.
        claims: The sentences of ``text``, each with its citations; empty where ``found`` is False.
    """

    text: str
    citations: tuple[Citation, ...]
    found: bool
    nearest: tuple[Citation, ...] = ()
    usage: Usage = Usage()
    reader: str = ""
    model: str = ""
    seconds: float = 0.0
    unsupported: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
