"""The whole document in the window: the measure for all other readers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from agents.answering import Answering, Basis
from agents.desk import Desk
from agents.steps import Assembled, Step
from memory.document import Span
from serving.errors import ContextOverflow

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
        documents = [desk.document(key) for key in desk.documents]
        text = "\n\n".join(f"[{d.title}]\n{d.text}" for d in documents)
        tokens = desk.model.count_tokens(text)
        room = desk.model.context_window - _REPLY_AND_TEMPLATE
        if tokens > room:
            raise ContextOverflow(tokens, room)
        titles = tuple(d.title for d in documents) if len(documents) > 1 else ()
        yield Assembled(tokens, room, len(documents), 0, titles)
        passages = desk.search(question, self.top_k)
        spans = [(d.id, Span(0, len(d.text))) for d in documents]
        yield from answering.answer(desk, question, Basis(text, spans, passages))
