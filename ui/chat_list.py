"""The library's chats in the sidebar: open, begin, rename, export, delete."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.conversations import Chat, Conversations, Turn
from app.export import MEDIA_TYPES, Form, export, file_name
from ui.opened import open_chat, opened_chat
from ui.safe import label

FORMS: dict[str, Form] = {"Markdown": "markdown", "Word (DOCX)": "docx", "JSON": "json"}
_SHOWN = 50


def chat_list(talks: Conversations) -> None:
    """Shows it."""
    with st.sidebar:
        st.button(
            "New chat",
            icon=":material/add_comment:",
            width="stretch",
            on_click=open_chat,
            args=("",),
            key="chat-new",
        )
        chats, current = talks.chats(), opened_chat()
        for chat in chats:
            if chat.id == current:
                _menu(talks, chat)
        if not chats:
            st.caption("Your chats will be listed here.")
        for chat in chats[:_SHOWN]:
            st.button(
                label(chat.title, max_chars=60),
                key=f"chat-{chat.id}",
                type="secondary" if chat.id == current else "tertiary",
                width="stretch",
                on_click=open_chat,
                args=(chat.id,),
            )
        if len(chats) > _SHOWN:
            st.caption(f"and {len(chats) - _SHOWN:,} older ones")


def _menu(talks: Conversations, chat: Chat) -> None:
    """What can be done with the chat that is open."""
    with st.popover("This chat", icon=":material/more_horiz:", width="stretch", key="chat-menu"):
        title = st.text_input("Title", value=chat.title, key=f"chat-title-{chat.id}")
        if title.strip() and title != chat.title:
            talks.rename(chat.id, title)
            st.rerun()
        export_buttons(partial(talks.turns, chat.id), chat.title, key="chat")
        st.button(
            "Delete this chat",
            icon=":material/delete:",
            key="chat-delete",
            width="stretch",
            on_click=_delete,
            args=(talks, chat.id),
        )


def export_buttons(turns: Callable[[], Sequence[Turn]], title: str, *, key: str) -> None:
    """Buttons that make a file when they are clicked.

    Args:
        turns: Gives what is exported.
        title: Stands at the file's head.
        key: Of the widgets.
    """
    for name, form in FORMS.items():
        st.download_button(
            f"Export as {name}",
            data=partial(_made, turns, form, title),
            file_name=file_name(title, form),
            mime=MEDIA_TYPES[form],
            key=f"export-{key}-{form}",
            on_click="ignore",
            width="stretch",
        )


def _made(turns: Callable[[], Sequence[Turn]], form: Form, title: str) -> bytes:
    return export(turns(), form, title=title)


def _delete(talks: Conversations, chat_id: str) -> None:
    talks.delete(chat_id)
    open_chat("")
