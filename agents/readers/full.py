"""The whole document in the window: the measure for all other readers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from agents.answering import Answering, Basis, opening
from agents.desk import Desk
from agents.steps import Assembled, Step
from memory.document import Document, Span
from serving.errors import ContextOverflow
from serving.model import Message

__all__ = ["FullReader"]

_REPLY_AND_TEMPLATE = 1_000  # tokens kept free for the instructions, the question and the reply


@dataclass(frozen=True, slots=True)
class FullReader:
    """Reads every word. A second question finds the document in the prefix cache.

    Attributes:
        top_k: How many passages are searched for, to show where nothing is found.
    """

    top_k: int = 3

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Assembled, Drafting…, Drafted, Verified, Answer.

        Raises:
            ContextOverflow: the documents do not fit the model's window.
        """
        answering = Answering("full", time.perf_counter())
        documents, text, tokens, room = _laid_out(desk)
        titles = tuple(d.title for d in documents) if len(documents) > 1 else ()
        yield Assembled(tokens, room, len(documents), 0, titles)
        passages = desk.search(question, self.top_k)
        spans = [(d.id, Span(0, len(d.text))) for d in documents]
        yield from answering.answer(desk, question, Basis(text, spans, passages))

    def opening(self, desk: Desk) -> list[Message]:
        """What all prompts about these documents begin with; see ``agents.steps.Opening``."""
        return opening(desk, _laid_out(desk)[1])


def _laid_out(desk: Desk) -> tuple[list[Document], str, int, int]:
    """Documents, the text that the prompt has of them, its tokens, and the room for them.

    Raises:
        ContextOverflow: they do not fit the model's window.
    """
    documents = [desk.document(key) for key in desk.documents]
    text = "\n\n".join(f"[{d.title}]\n{d.text}" for d in documents)
    tokens = desk.model.count_tokens(text)
    room = desk.model.context_window - _REPLY_AND_TEMPLATE
    if tokens > room:
        raise ContextOverflow(tokens, room)
    return documents, text, tokens, room
