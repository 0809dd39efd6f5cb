"""A question and its answers in the chat."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.conversations import Conversations, Turn, answer_in
from app.export import STATES, spent_line
from app.types import Answer, Citation, GistreeError
from ui.answer_view import answer_view, short_place
from ui.chat_list import export_buttons
from ui.opened import open_source, opened_source
from ui.safe import block, label

_EVERY_S = 0.5
_NEXT = {
    "stopped": "You stopped this answer. What it has so far was not checked against the source.",
    "interrupted": "The server ended before this answer did. What it had written was not checked.",
    "failed": "This question could not be answered:",
    "withdrawn": STATES["withdrawn"],
}


def question_view(question: str) -> None:
    """The question."""
    with st.chat_message("user", avatar=":material/person:"):
        st.html(block(question, kind="gt-pre gt-question"))


@dataclass(frozen=True, slots=True)
class Chatting:
    """What the answers of a chat are shown with.

    Attributes:
        talks: The library's chats.
        readers: Names of those that a question can be asked again with.
        num_documents: How many the library holds.
    """

    talks: Conversations
    readers: Sequence[str]
    num_documents: int


def answers_view(chatting: Chatting, turns: Sequence[Turn]) -> None:
    """The answers to one question: the two newest side by side, older ones folded away.

    Beside an open source there is no room for two; they lie behind each other there.
    """
    if len(turns) > 2:
        with st.expander(_count(len(turns) - 2, "earlier answer")):
            for turn in turns[:-2]:
                _answer(chatting, turn, is_named=True)
    shown = turns[-2:]
    if len(shown) == 1:
        _answer(chatting, shown[0], is_named=False)
        return
    names = [f"{number}. {label(turn.reader)}" for number, turn in enumerate(shown, 1)]
    places = st.tabs(names) if opened_source() else st.columns(2, border=True)
    for place, turn in zip(places, shown, strict=True):
        with place:
            _answer(chatting, turn, is_named=True)


def _answer(chatting: Chatting, turn: Turn, *, is_named: bool) -> None:
    if is_named:
        st.html(f'<div class="gt-muted">Reader <b>{html.escape(turn.reader)}</b></div>')
    if turn.state == "running":
        _running(chatting.talks, turn)
        return
    answer = answer_in(turn)
    _steps(turn.steps, is_open=False)
    if answer is None:
        _ended_early(turn)
    else:
        scope = chatting.num_documents if turn.documents is None else len(turn.documents)
        (_found if answer.found else _not_found)(turn, answer, several=scope > 1)
    _below(chatting, turn, answer)


@st.fragment(run_every=_EVERY_S)
def _running(talks: Conversations, turn: Turn) -> None:
    """An answer in the making. Only this part of the page is drawn again, twice a second."""
    try:
        turn = talks.turn(turn.id)
        progress = talks.progress(turn)
    except GistreeError:  # the chat was deleted in another tab; the whole page tells
        progress = None
    if progress is None:
        st.rerun()
        return
    _steps(progress.steps, is_open=True)
    if progress.draft:
        st.html(block(progress.draft + " ▍", kind="gt-pre gt-draft"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop",
            icon=":material/stop_circle:",
            key=f"stop-{turn.id}",
            on_click=talks.stop,
            args=(turn.id,),
        )
        doing = (
            "writing"
            if progress.draft
            else "the model is reading"
            if progress.steps
            else "searching"
        )
        st.html(
            f'<span class="gt-muted" role="status">{doing} · {progress.seconds:,.0f} s</span>',
            width="content",
        )


def _steps(steps: Sequence[Mapping[str, Any]], *, is_open: bool) -> None:
    if not steps:
        return
    items = "".join(
        f'<li dir="auto">{html.escape(str(step["says"]))}</li>'
        for step in steps
        if step["step"] != "Drafted"
    )
    listed = f'<ol class="gt gt-steps">{items}</ol>'
    if is_open:
        st.html(listed)
        return
    with st.expander(f"How it was read: {_count(len(steps), 'step')}", icon=":material/footprint:"):
        st.html(listed)


def _found(turn: Turn, answer: Answer, *, several: bool) -> None:
    opened = opened_source()
    places = [(c.document_id, c.span) for c in answer.citations]
    here = (opened.document, opened.span) if opened else None
    answer_view(
        answer,
        key=f"answer-{turn.id}",
        opened=places.index(here) + 1 if here in places else 0,
        several=several,
        on_open=open_source,
    )
    with st.expander(_count(len(places), "quote"), icon=":material/format_quote:"):
        _quotes(turn, answer.citations, several=several)


def _not_found(turn: Turn, answer: Answer, *, several: bool) -> None:
    with st.container(border=True, key=f"not-found-{turn.id}"):
        st.markdown(f":material/search_off: **{label(answer.text)}**")
        if answer.nearest:
            st.caption("Nothing there answers this. The passages nearest to the question:")
            _quotes(turn, answer.nearest, several=several)


def _quotes(turn: Turn, citations: Sequence[Citation], *, several: bool) -> None:
    for number, citation in enumerate(citations, 1):
        st.button(
            label(f"{number} · {short_place(citation, several=several)}"),
            key=f"quote-{turn.id}-{number}",
            type="tertiary",
            icon=":material/menu_book:",
            help=label(f"{citation.title}, {citation.place}", max_chars=200),
            on_click=open_source,
            args=(citation,),
        )
        st.html(block(" ".join(citation.quote.split()), kind="gt-cited"))


def _ended_early(turn: Turn) -> None:
    icon = ":material/error:" if turn.state == "failed" else ":material/pause_circle:"
    message = _NEXT[turn.state]
    if turn.error:
        message = f"{message} {label(turn.error)}"
    (st.error if turn.state == "failed" else st.info)(message, icon=icon)
    if turn.draft:
        st.html(block(turn.draft, kind="gt-pre gt-draft"))


def _below(chatting: Chatting, turn: Turn, answer: Answer | None) -> None:
    """What it took, and what can be done with it."""
    talks = chatting.talks
    if answer is not None:
        st.html(f'<p class="gt gt-muted">{html.escape(spent_line(answer))}</p>')
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if answer is not None:
            rated = {"good": 1, "bad": 0}.get(turn.feedback)
            st.feedback(
                "thumbs",
                key=f"feedback-{turn.id}",
                default=rated,
                on_change=_rate,
                args=(talks, turn.id),
            )
            with st.popover(
                "Copy or export", icon=":material/content_copy:", key=f"gt-icon-copy-{turn.id}"
            ):
                st.code(answer.text, language=None, wrap_lines=True)
                export_buttons(lambda: [turn], turn.question, key=turn.id)
        if turn.state != "withdrawn":
            with st.popover("Ask again", icon=":material/refresh:"):
                for reader in chatting.readers:
                    st.button(
                        f"with {label(reader)}",
                        key=f"again-{turn.id}-{reader}",
                        width="stretch",
                        on_click=_again,
                        args=(talks, turn, reader),
                    )


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _again(talks: Conversations, turn: Turn, reader: str) -> None:
    talks.again(turn, reader=reader)


def _rate(talks: Conversations, turn_id: str) -> None:
    given = st.session_state[f"feedback-{turn_id}"]
    talks.rate(turn_id, {1: "good", 0: "bad"}.get(given, ""))  # type: ignore[arg-type]
