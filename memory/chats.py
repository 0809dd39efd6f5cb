"""Chats in the library's database: questions, the steps of their answers, the answers."""

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from memory.errors import ChatNotFound
from memory.tables import ChatRow, DocumentRow, TurnDocumentRow, TurnRow

if TYPE_CHECKING:
    from memory.store import Store

TurnState = Literal["running", "done", "stopped", "failed", "interrupted", "withdrawn"]
"""running: being answered; stopped: by the person; interrupted: its server was killed;
withdrawn: a document that the answer was made from has been deleted, and the answer with it."""
Feedback = Literal["", "good", "bad"]
_WITHDRAWN = {"state": "withdrawn", "steps": "[]", "draft": "", "answer": "", "error": ""}


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, as a list shows it."""

    id: str
    title: str
    begun_at: datetime
    num_turns: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and what came of it.

    Attributes:
        documents: Ids of the documents that were asked; None for all of the library.
        budget_tokens: Most tokens of document text in a prompt; 0 for what suits the model.
        again_of: The turn whose question was asked again with another reader; empty otherwise.
        steps: What the reader did, as data.
        draft: The reply as far as it came, before it was checked.
        answer: The answer as data, None where there is none.
        error: What went wrong, in words.
    """

    id: str
    chat_id: str
    question: str
    documents: tuple[str, ...] | None
    reader: str
    budget_tokens: int
    again_of: str
    asked_at: datetime
    state: TurnState
    steps: tuple[Mapping[str, Any], ...]
    draft: str
    answer: Mapping[str, Any] | None
    error: str
    feedback: Feedback
    owner: str
    beat: float


class Chats:
    """What a library keeps of its chats. Every method is one transaction."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    def chats(self) -> list[Chat]:
        """All chats, the newest first."""
        count = (
            select(func.count()).where(TurnRow.chat_id == ChatRow.id).correlate(ChatRow)
        ).scalar_subquery()
        with self._store.transaction() as session:
            rows = session.execute(
                select(ChatRow, count).order_by(ChatRow.begun_at.desc(), ChatRow.id)
            ).all()
        return [Chat(row.id, row.title, row.begun_at, num or 0) for row, num in rows]

    def begin(self, title: str) -> str:
        """A new chat; returns its id."""
        row = ChatRow(id=uuid.uuid4().hex, title=title, begun_at=datetime.now(UTC))
        with self._store.writing() as session:
            session.add(row)
        return row.id

    def rename(self, chat_id: str, title: str) -> None:
        """Gives a chat another title."""
        with self._store.writing() as session:
            _chat(session, chat_id).title = title

    def delete(self, chat_id: str) -> None:
        """Removes a chat and all its turns."""
        with self._store.writing() as session:
            session.execute(delete(ChatRow).where(ChatRow.id == chat_id))
        self._store.reclaim()

    def turns(self, chat_id: str) -> list[Turn]:
        """A chat's turns, the oldest first; none for a chat that there is not."""
        with self._store.transaction() as session:
            query = select(TurnRow).where(TurnRow.chat_id == chat_id)
            rows = session.scalars(query.order_by(TurnRow.asked_at, TurnRow.id)).all()
        return [_turn(row) for row in rows]

    def turn(self, turn_id: str) -> Turn:
        """One turn.

        Raises:
            ChatNotFound: there is none.
        """
        with self._store.transaction() as session:
            row = session.get(TurnRow, turn_id)
        if row is None:
            raise ChatNotFound("this question is no longer in the library; its chat was deleted")
        return _turn(row)

    def add_turn(
        self,
        chat_id: str,
        question: str,
        *,
        documents: Sequence[str] | None,
        reader: str,
        budget_tokens: int,
        again_of: str = "",
        owner: str,
    ) -> Turn:
        """A turn that its owner begins to answer.

        Raises:
            ChatNotFound: there is no such chat.
        """
        row = TurnRow(
            id=uuid.uuid4().hex,
            chat_id=chat_id,
            question=question,
            documents=json.dumps(documents),
            reader=reader,
            budget_tokens=budget_tokens,
            again_of=again_of,
            asked_at=datetime.now(UTC),
            state="running",
            steps="[]",
            draft="",
            answer="",
            error="",
            feedback="",
            owner=owner,
            beat=time.time(),
        )
        with self._store.writing() as session:
            _chat(session, chat_id)
            session.add(row)
        return _turn(row)

    def keep(
        self,
        turn_id: str,
        *,
        state: TurnState,
        steps: Sequence[Mapping[str, Any]],
        draft: str,
        answer: Mapping[str, Any] | None = None,
        error: str = "",
        seen: Collection[str],
    ) -> bool:
        """Keeps how far a turn is, unless it has ended already.

        Where one of the documents that it has seen was deleted meanwhile, the turn is withdrawn
        instead and nothing of it is kept.

        Args:
            turn_id: The turn.
            state: Its state now.
            steps: All of them so far.
            draft: The reply so far.
            answer: The answer, once there is one.
            error: What went wrong.
            seen: Ids of the documents whose text the steps, the draft or the answer may hold.

        Returns:
            Whether it was kept: False where the turn is gone, withdrawn, or had ended.
        """
        with self._store.writing() as session:
            if not _touch(session, turn_id):
                return False
            there = set(
                session.scalars(select(DocumentRow.id).where(DocumentRow.id.in_(sorted(seen))))
            )
            if not there.issuperset(seen):
                session.execute(update(TurnRow).where(TurnRow.id == turn_id).values(_WITHDRAWN))
                return False
            kept = {
                "state": state,
                "steps": json.dumps(list(steps), ensure_ascii=False),
                "draft": draft,
                "answer": json.dumps(answer, ensure_ascii=False) if answer else "",
                "error": error,
            }
            session.execute(update(TurnRow).where(TurnRow.id == turn_id).values(kept))
            query = select(TurnDocumentRow.document_id).where(TurnDocumentRow.turn_id == turn_id)
            known = set(session.scalars(query))
            session.add_all(
                TurnDocumentRow(turn_id=turn_id, document_id=key) for key in there - known
            )
            return True

    def beat(self, turn_id: str) -> bool:
        """A sign of life of the worker that answers; False where the turn runs no more."""
        with self._store.writing() as session:
            return _touch(session, turn_id)

    def interrupt(self, turn_id: str) -> None:
        """Marks a running turn as interrupted: nobody works on it any more."""
        with self._store.writing() as session:
            running = update(TurnRow).where(TurnRow.id == turn_id, TurnRow.state == "running")
            session.execute(running.values(state="interrupted"))

    def rate(self, turn_id: str, feedback: Feedback) -> None:
        """Keeps what the person thinks of an answer."""
        with self._store.writing() as session:
            session.execute(update(TurnRow).where(TurnRow.id == turn_id).values(feedback=feedback))


def forget_document(session: Session, document_id: str) -> None:
    """Empties the turns that have seen a document: questions stay, their answers go.

    An answer's words may be the document's, so more than its quotes must go.
    """
    seen = select(TurnDocumentRow.turn_id).where(TurnDocumentRow.document_id == document_id)
    session.execute(update(TurnRow).where(TurnRow.id.in_(seen)).values(_WITHDRAWN))


def _touch(session: Session, turn_id: str) -> bool:
    """Gives a sign of life of a running turn; False where it runs no more."""
    running = update(TurnRow).where(TurnRow.id == turn_id, TurnRow.state == "running")
    done = session.execute(running.values(beat=time.time()))
    return bool(done.rowcount)  # type: ignore[attr-defined]


def _chat(session: Session, chat_id: str) -> ChatRow:
    row = session.get(ChatRow, chat_id)
    if row is None:
        raise ChatNotFound("this chat is no longer in the library; begin a new one")
    return row


def _turn(row: TurnRow) -> Turn:
    documents = json.loads(row.documents)
    return Turn(
        id=row.id,
        chat_id=row.chat_id,
        question=row.question,
        documents=None if documents is None else tuple(documents),
        reader=row.reader,
        budget_tokens=row.budget_tokens,
        again_of=row.again_of,
        asked_at=row.asked_at,
        state=row.state,  # type: ignore[arg-type]  # as it was kept
        steps=tuple(json.loads(row.steps)),
        draft=row.draft,
        answer=json.loads(row.answer) if row.answer else None,
        error=row.error,
        feedback=row.feedback,  # type: ignore[arg-type]
        owner=row.owner,
        beat=row.beat,
    )
