"""What is open in the page "Read", kept in its address: a refresh or a bookmark finds it again."""

import re
from dataclasses import dataclass

import streamlit as st

from app.types import Citation, Span

_SOURCE = re.compile(r"([0-9a-f]{64}):(\d{1,12})-(\d{1,12})")


@dataclass(frozen=True, slots=True)
class Opened:
    """A place in a document that is shown beside the chat."""

    document: str
    span: Span

    @property
    def token(self) -> str:
        """It as text."""
        return f"{self.document}:{self.span.start}-{self.span.end}"


def opened_chat() -> str:
    """Id of the chat that is open; empty for a new one."""
    return st.query_params.get("chat", "")


def open_chat(chat_id: str) -> None:
    """Opens a chat; an empty id opens a new one."""
    close_source()
    if chat_id:
        st.query_params["chat"] = chat_id
    elif "chat" in st.query_params:
        del st.query_params["chat"]


def opened_source() -> Opened | None:
    """The place that is shown beside the chat."""
    found = _SOURCE.fullmatch(st.query_params.get("source", ""))
    if found is None or int(found[2]) > int(found[3]):
        return None
    return Opened(found[1], Span(int(found[2]), int(found[3])))


def open_source(citation: Citation) -> None:
    """Shows a citation's place beside the chat."""
    opened = Opened(citation.document_id, citation.span)
    st.query_params["source"] = opened.token
    st.session_state.source_token = ""  # a second click turns to its page again


def close_source() -> None:
    """Shows the chat alone."""
    if "source" in st.query_params:
        del st.query_params["source"]
