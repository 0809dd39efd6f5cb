"""The page "Library": add documents, watch them being read, find, rename, tag, delete them."""

from collections.abc import Callable

import streamlit as st

from app.library import Library
from app.overview import SORTS, Overview, overview, room_bytes, size
from app.types import Entry
from ui.activity import activity
from ui.adding import first_run, upload_panel
from ui.details import details, facts, open_details
from ui.guard import guarded
from ui.here import library
from ui.safe import block, inline, label

_AT_ONCE = 20


@guarded
def page() -> None:
    """Shows it."""
    shelf = library()
    st.title("Library")
    everything = overview(shelf)
    upload_panel(shelf, everything.tags)
    activity(shelf, ("add", "fetch", "delete"))
    if not everything.num_documents:
        if not shelf.read_only and all(
            job.state in ("done", "failed") for job in shelf.jobs.list()
        ):
            first_run(shelf)
        return
    st.caption(
        f"{everything.num_documents:,} "
        f"{'document' if everything.num_documents == 1 else 'documents'}, "
        f"{everything.num_words:,} words, {size(room_bytes(shelf))} on this disk"
    )
    _list(shelf, everything)
    details(shelf)


def _list(shelf: Library, everything: Overview) -> None:
    if everything.num_documents > 1:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            words = st.text_input(
                "Find", placeholder="title, file or tag", key="find", icon=":material/search:"
            )
            sort = st.selectbox("Order", list(SORTS), key="sort")
        tags = (
            st.pills(
                "Tags", everything.tags[:20], selection_mode="multi", format_func=label, key="tags"
            )
            if everything.tags
            else []
        )
    else:
        words, sort, tags = "", next(iter(SORTS)), []
    part = st.session_state.get("part", 1) - 1
    found = overview(shelf, words=words, tags=tags, sort=sort, part=part, at_once=_AT_ONCE)
    if not found.rows:
        st.info("No document fits. Take away words or tags.", icon=":material/search_off:")
    for entry, num_problems in found.rows:
        _row(shelf, entry, num_problems)
    if found.num_parts > 1:
        st.session_state["part"] = min(st.session_state.get("part", 1), found.num_parts)
        st.pagination(found.num_parts, key="part")


def _row(shelf: Library, entry: Entry, num_problems: int) -> None:
    with st.container(
        border=True, key=f"document-{entry.id[:16]}", horizontal=True, vertical_alignment="center"
    ):
        st.html(
            block(entry.title, kind="gt-title")
            + block(facts(entry), kind="gt-muted")
            + "".join(inline(tag, kind="gt-tag") for tag in entry.tags),
            width="stretch",
        )
        if num_problems:
            problems = "1 problem" if num_problems == 1 else f"{num_problems:,} problems"
            _button(problems, "warning", entry, lambda: open_details(entry.id))
        _button("Details", "edit_note", entry, lambda: open_details(entry.id))
        if not shelf.read_only:
            _button("Delete", "delete", entry, lambda: _delete(shelf, entry.id))


def _button(name: str, icon: str, entry: Entry, does: Callable[[], None]) -> None:
    st.button(
        name,
        key=f"{icon}-{entry.id}",
        icon=f":material/{icon}:",
        type="tertiary",
        help=label(f"{name}: {entry.title}", max_chars=80),
        on_click=does,
    )


def _delete(shelf: Library, document_id: str) -> None:
    shelf.jobs.delete(document_id)
