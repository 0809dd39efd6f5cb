"""Where questions have led a reader in a document, from the chats that are kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.conversations import Turn, answer_in
from app.library import Library
from memory.document import Span

_MOST_CHATS = 50


@dataclass(frozen=True, slots=True)
class Visit:
    """A question and the places in one document that its reader opened.

    Attributes:
        turn_id: Of the question, in its chat.
        question: As it was asked.
        reader: That answered.
        spans: What was looked up, read or cited, in the document's text.
        nodes: Nodes of the memory tree that were entered, by number, with their spans.
    """

    turn_id: str
    question: str
    reader: str
    spans: tuple[Span, ...]
    nodes: Mapping[int, Span]

    def touches(self, span: Span) -> bool:
        """Whether something within a span was opened."""
        return any(span.start < own.end and own.start < span.end for own in self.spans)


def visits(library: Library, document_id: str, *, most: int = 20) -> list[Visit]:
    """The latest questions that led into a document, the newest first.

    Args:
        library: With its chats.
        document_id: Of the document.
        most: How many.
    """
    talks = library.conversations
    turns = [turn for chat in talks.chats()[:_MOST_CHATS] for turn in talks.turns(chat.id)]
    turns.sort(key=lambda turn: turn.asked_at, reverse=True)
    found = (_visit(turn, document_id) for turn in turns)
    return [visit for visit in found if visit.spans or visit.nodes][:most]


def _visit(turn: Turn, document_id: str) -> Visit:
    spans = [span for key, span in _looked_up(turn) if key == document_id]
    nodes: dict[int, Span] = {}
    for step in turn.steps:
        if step["step"] == "Walked" and step["place"]["document_id"] == document_id:
            span = _span(step["place"])
            nodes[int(step["node"])] = span
            if step["action"] == "read":
                spans.append(span)
    answer = answer_in(turn)
    reader = turn.reader if answer is None else answer.reader
    return Visit(turn.id, turn.question, reader, tuple(dict.fromkeys(spans)), nodes)


def _looked_up(turn: Turn) -> Iterator[tuple[str, Span]]:
    for step in turn.steps:
        if step["step"] == "LookedUp":
            for place in step["places"]:
                yield str(place["document_id"]), _span(place)
    answer = answer_in(turn)
    for citation in answer.citations if answer else ():
        yield citation.document_id, citation.span


def _span(place: Mapping[str, Any]) -> Span:
    return Span(int(place["span"]["start"]), int(place["span"]["end"]))
