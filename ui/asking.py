"""What a person chooses before asking: documents, a reader, a budget."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.conversations import Turn
from app.reading_choices import reader_choices
from app.types import Entry
from ui.opened import opened_source
from ui.safe import label

_TITLE_CHARS = 70


@dataclass(frozen=True, slots=True)
class Choice:
    """How a question is asked.

    Attributes:
        documents: Ids; None for all.
        reader: Its name.
        budget_tokens: None for what suits the model.
    """

    documents: tuple[str, ...] | None
    reader: str
    budget_tokens: int | None


def choose(entries: Sequence[Entry], usual_reader: str, last: Turn | None) -> Choice:
    """The row of choices, folded away once a chat has begun; it begins with the last ones."""
    chat = last.chat_id if last else ""
    titles = {entry.id: entry.title[:_TITLE_CHARS] for entry in entries}
    readers = {choice.name: choice.line for choice in reader_choices(usual_reader)}
    state = st.session_state
    if state.get("choices_of") != chat or "asked_reader" not in state:
        state.choices_of = chat  # another chat, or back from another page
        before = (last.documents or ()) if last else ()
        state.asked_documents = list(before)
        state.asked_reader = last.reader if last and last.reader in readers else next(iter(readers))
        state.asked_budget = (last.budget_tokens or None) if last else None
    state.asked_documents = [key for key in state.asked_documents if key in titles]
    if last is None:
        return _row(titles, readers)
    with st.expander(_summary(titles), icon=":material/tune:"):
        return _row(titles, readers)


def _summary(titles: Mapping[str, str]) -> str:
    """What is chosen, in a line."""
    state = st.session_state
    chosen = state.asked_documents
    if len(chosen or titles) == 1:
        which = titles[(chosen or list(titles))[0]]
    else:
        which = f"{len(chosen):,} documents" if chosen else f"all {len(titles):,} documents"
    budget = f" · {state.asked_budget:,} tokens" if state.asked_budget else ""
    return f"Asks {label(which, max_chars=50)} with {label(state.asked_reader)}{budget}"


def _row(titles: Mapping[str, str], readers: Mapping[str, str]) -> Choice:
    if opened_source():
        documents, (reader, budget) = st.container(), st.columns([1.3, 1])
    else:
        documents, reader, budget = st.columns([3, 1.6, 1.2])
    chosen = documents.multiselect(
        "Documents",
        list(titles),
        format_func=titles.__getitem__,
        key="asked_documents",
        placeholder="The document" if len(titles) == 1 else f"All {len(titles):,} documents",
    )
    name = reader.selectbox(
        "Reader",
        list(readers),
        key="asked_reader",
        help="  \n".join(f"**{name}**: {line}" for name, line in readers.items()),
    )
    tokens = budget.number_input(
        "Budget",
        min_value=100,
        max_value=1_000_000,
        step=100,
        value=None,
        key="asked_budget",
        placeholder="suits the model",
        help="In tokens: the most of document text that the model is given at once. More "
        "finds more and takes longer.",
    )
    st.html(f'<p class="gt-muted gt-reader-line">{html.escape(readers[name])}</p>')
    return Choice(tuple(chosen) or None, name, None if tokens is None else int(tokens))
