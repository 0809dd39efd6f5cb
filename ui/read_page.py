"""The page "Read": ask documents in a chat, and check each answer in the document itself."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app.conversations import Conversations, Turn
from app.library import Library
from app.reading_choices import reader_choices, suggested_questions
from app.types import Entry
from ui.asking import Choice, choose
from ui.chat_list import chat_list
from ui.guard import guarded
from ui.here import here
from ui.opened import open_chat, opened_chat, opened_source
from ui.source_pane import source_pane
from ui.turn_view import Chatting, answers_view, question_view

_STYLE = (Path(__file__).parent / "parts" / "read.css").read_text(encoding="utf-8")
_SHOWN = 20


@guarded
def page() -> None:
    """Shows it."""
    st.html(f"<style>{_STYLE}</style>")
    library = here().library
    talks, entries = library.conversations, library.list()
    chat_list(talks)
    source = opened_source()
    if source is None:
        _chat(library, entries)
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _chat(library, entries)
    with right, st.container(key="gt-source"):
        source_pane(source)


def _chat(library: Library, entries: Sequence[Entry]) -> None:
    talks, usual_reader = library.conversations, library.settings.reader
    chat_id = opened_chat()
    turns = talks.turns(chat_id) if chat_id else []
    if not entries and not turns:
        _empty_library()
        return
    if not turns:
        st.title("Read")
    choice = choose(entries, usual_reader, turns[-1] if turns else None)
    if library.settings.warm_up and entries:
        library.warmer.begin(choice.documents, choice.reader, choice.budget_tokens)
    groups = _by_question(turns)
    if len(groups) > _SHOWN and not st.toggle(f"Show {len(groups) - _SHOWN} earlier questions"):
        groups = groups[-_SHOWN:]
    readers = [choice.name for choice in reader_choices(usual_reader)]
    chatting = Chatting(talks, readers, len(entries))
    for group in groups:
        question_view(group[0].question)
        with st.chat_message("assistant", avatar=":material/menu_book:"):
            answers_view(chatting, group)
    if not turns:
        _suggestions(talks, entries, choice)
    question = st.chat_input("Ask the documents", key="question", disabled=not entries)
    if question:
        _ask(talks, chat_id if turns else "", question, choice)
        st.rerun()


def _ask(talks: Conversations, chat_id: str, question: str, choice: Choice) -> None:
    chat_id = chat_id or talks.begin(question)
    talks.ask(
        chat_id,
        question,
        documents=choice.documents,
        reader=choice.reader,
        budget_tokens=choice.budget_tokens,
    )
    if opened_chat() != chat_id:
        open_chat(chat_id)


def _suggestions(talks: Conversations, entries: Sequence[Entry], choice: Choice) -> None:
    """Questions to begin with."""
    asked = [e for e in entries if choice.documents is None or e.id in choice.documents]
    questions = suggested_questions(asked)
    if not questions:
        st.caption("Ask a question below. Every answer shows the places that bear it out.")
        return
    st.caption("Some questions to begin with. The book does not answer the last one.")
    for question in questions:
        st.button(
            question,
            icon=":material/chat:",
            key=f"suggested-{question}",
            on_click=_ask,
            args=(talks, "", question, choice),
        )


def _by_question(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Turns in groups: a question, and the same question asked again."""
    groups: dict[str, list[Turn]] = {}
    for turn in turns:
        groups.setdefault(turn.again_of or turn.id, []).append(turn)
    return list(groups.values())


def _empty_library() -> None:
    st.title("Read")
    st.info(
        "The library is empty. Add documents, or the sample book, in the page “Library”.",
        icon=":material/library_add:",
    )
