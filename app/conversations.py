"""Chats of a library: questions asked, answers in the making and made, kept across restarts."""

import time
from collections.abc import Collection, Iterator
from typing import Protocol

from agents.answer import Answer
from agents.steps import Step
from app.answering_jobs import AnsweringJobs, Progressing
from app.lookup import clean
from app.owner import is_dead, new_owner
from app.present import answer_of
from memory.chats import Chat, Chats, Feedback, Turn
from memory.store import Store
from serving.plugins import make

__all__ = ["Chat", "Conversations", "Feedback", "Progressing", "Turn", "answer_in"]

_SILENT_S = 120.0  # without a sign of life from another machine, nobody is at work
_TITLE_CHARS = 80


class Asked(Protocol):
    """What a conversation needs of a library."""

    def read(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
    ) -> Iterator[Step]:
        """The steps towards an answer."""
        ...


class Conversations:
    """A library's chats. Several people, tabs and processes may use them at a time."""

    def __init__(self, library: Asked, store: Store, *, default_reader: str) -> None:
        self._library = library
        self._store = store
        self._chats = Chats(store)
        self._jobs = AnsweringJobs(self._chats)
        self._default_reader = default_reader

    def close(self) -> None:
        """Stops what is being answered."""
        self._jobs.close()

    def chats(self) -> list[Chat]:
        """All chats, the newest first."""
        return self._chats.chats()

    def begin(self, title: str = "New chat") -> str:
        """A new chat; returns its id."""
        return self._chats.begin(_title(title))

    def rename(self, chat_id: str, title: str) -> None:
        """Gives a chat another title."""
        if not _title(title):
            raise ValueError("a title needs at least one character")
        self._chats.rename(chat_id, _title(title))

    def delete(self, chat_id: str) -> None:
        """Removes a chat; what is being answered in it stops."""
        for turn in self._chats.turns(chat_id):
            self._jobs.stop(turn.id)
        self._chats.delete(chat_id)

    def turns(self, chat_id: str) -> list[Turn]:
        """A chat's turns, the oldest first; those whose worker died are marked interrupted."""
        turns = self._chats.turns(chat_id)
        orphans = [turn for turn in turns if self._is_orphan(turn)]
        for turn in orphans:
            self._chats.interrupt(turn.id)
        return self._chats.turns(chat_id) if orphans else turns

    def turn(self, turn_id: str) -> Turn:
        """One turn; marked interrupted where its worker died.

        Raises:
            ChatNotFound: there is none.
        """
        turn = self._chats.turn(turn_id)
        if not self._is_orphan(turn):
            return turn
        self._chats.interrupt(turn.id)
        return self._chats.turn(turn_id)

    def ask(
        self,
        chat_id: str,
        question: str,
        *,
        documents: Collection[str] | None = None,
        reader: str | None = None,
        budget_tokens: int | None = None,
        again_of: str = "",
    ) -> Turn:
        """Asks in a chat. It returns at once: a thread of this process answers.

        Args:
            chat_id: The chat.
            question: What to find out.
            documents: Ids of the documents to ask; all where not given.
            reader: As in ``Library.read``.
            budget_tokens: As in ``Library.read``.
            again_of: The turn whose question it is, where it is asked again.

        Raises:
            ValueError: the question is empty.
            UnknownName: no such reader.
            ChatNotFound: no such chat.
        """
        question = clean(question).strip()
        if not question:
            raise ValueError("a question needs at least one word")
        reader = reader or self._default_reader
        make("agents.readers", reader)  # says now what is wrong with its name
        if not self._chats.turns(chat_id):
            self._chats.rename(chat_id, _title(question))
        turn = self._chats.add_turn(
            chat_id,
            question,
            documents=None if documents is None else sorted(documents),
            reader=reader,
            budget_tokens=budget_tokens or 0,
            again_of=again_of,
            owner=new_owner(),
        )
        scope = self._store.document_ids() if documents is None else set(documents)
        self._jobs.start(
            turn,
            scope,
            lambda: self._library.read(
                question, documents=documents, reader=reader, budget_tokens=budget_tokens or None
            ),
        )
        return turn

    def again(self, turn: Turn, *, reader: str | None = None) -> Turn:
        """Asks a turn's question again, with its own reader or another one."""
        return self.ask(
            turn.chat_id,
            turn.question,
            documents=turn.documents,
            reader=reader or turn.reader,
            budget_tokens=turn.budget_tokens,
            again_of=turn.again_of or turn.id,
        )

    def stop(self, turn_id: str) -> None:
        """Ends a turn in mid-answer; what it has is kept."""
        self._jobs.stop(turn_id)

    def wait(self, turn_id: str, timeout_s: float) -> bool:
        """Waits until a turn has ended; False where it has not by then."""
        return self._jobs.wait(turn_id, timeout_s)

    def progress(self, turn: Turn) -> Progressing | None:
        """How far a running turn is; from the database where another process answers it."""
        if turn.state != "running":
            return None
        here = self._jobs.progress(turn.id)
        if here is not None:
            return here
        return Progressing(turn.steps, turn.draft, time.time() - turn.asked_at.timestamp())

    def rate(self, turn_id: str, feedback: Feedback) -> None:
        """Keeps what the person thinks of an answer."""
        self._chats.rate(turn_id, feedback)

    def _is_orphan(self, turn: Turn) -> bool:
        if turn.state != "running" or self._jobs.progress(turn.id) is not None:
            return False
        return is_dead(turn.owner) or time.time() - turn.beat > _SILENT_S


def answer_in(turn: Turn) -> Answer | None:
    """The answer that a turn ended with, if it did."""
    return None if turn.answer is None else answer_of(turn.answer)


def _title(text: str) -> str:
    words = " ".join(clean(text).split())
    return words if len(words) <= _TITLE_CHARS else words[: _TITLE_CHARS - 1] + "…"
