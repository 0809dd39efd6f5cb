"""One document of the library: its title, tags and problems, to see and to change."""

import streamlit as st

from app.library import Library
from app.overview import size
from app.types import DocumentNotFound, Entry
from ui.safe import block

_OPEN = "details-of"


def open_details(document_id: str) -> None:
    """Has a document's details shown from the next run on."""
    st.session_state[_OPEN] = document_id


def _close() -> None:
    st.session_state.pop(_OPEN, None)


def details(library: Library) -> None:
    """Shows those that were asked for, over the page, until they are closed."""
    document_id = st.session_state.get(_OPEN)
    if document_id is None:
        return
    try:
        entry = library.show(document_id)
    except DocumentNotFound:
        _close()
        return
    st.dialog("Document", width="medium", on_dismiss=_close)(_shown)(library, entry)


def _shown(library: Library, entry: Entry) -> None:
    st.html(block(entry.title, kind="gt-title"))
    st.html(block(facts(entry), kind="gt-muted"))
    problems = library.problems(entry.id)
    if problems:
        st.subheader("What could not be read")
        for problem in problems:
            where = f"Page {problem.page + 1}: " if problem.page is not None else ""
            st.html(block(f"{where}{problem.what}. {problem.remedy}", kind="gt-problem"))
    if library.read_only:
        return
    with st.form("details", border=False):
        title = st.text_input("Title", entry.title, max_chars=500)
        all_tags = sorted({tag for other in library.list() for tag in other.tags})
        tags = st.multiselect("Tags", all_tags, list(entry.tags), accept_new_options=True)
        if st.form_submit_button("Keep", type="primary"):
            if title.strip() and title != entry.title:
                library.rename(entry.id, title)
            library.tag(entry.id, *tags)
            _close()
            st.rerun()


def facts(entry: Entry) -> str:
    """A document in a line."""
    unit = "pages" if entry.paged else "parts"
    read = (
        f"{entry.num_pages:,} {unit}"
        if entry.pages_read == entry.num_pages
        else f"{entry.pages_read:,} of {entry.num_pages:,} {unit} read"
    )
    return " · ".join(
        (
            entry.name,
            read,
            f"{entry.num_words:,} words",
            size(entry.size_bytes),
            f"added {entry.added_at.astimezone():%d %b %Y}",
        )
    )
