"""Adding documents: files and folders dropped or chosen, and the sample book of a first run."""

from collections.abc import Sequence

import streamlit as st

from app.library import Library
from app.models import missing_models, size_of
from app.overview import size
from app.sample import AUTHOR, QUESTIONS, TITLE, sample_book
from ui.here import here
from ui.safe import block, label

_TURN = "uploads-taken"  # counts: a new number is a new, empty uploader


def upload_panel(library: Library, tags: Sequence[str]) -> None:
    """Where files are dropped or chosen."""
    if library.read_only:
        st.info("This library can be read, not changed.", icon=":material/lock:")
        return
    turn = st.session_state.setdefault(_TURN, 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        what = st.segmented_control(
            "Add", ["Files", "A folder"], default="Files", required=True, key="adding-what"
        )
        chosen = st.multiselect(
            "Tags for them",
            list(tags),
            accept_new_options=True,
            placeholder="none",
            key="adding-tags",
        )
    key = f"upload-{turn}-{what}"
    st.file_uploader(
        "Drop documents here: PDF, EPUB, DOCX, ODT, HTML, Markdown, text, RTF, e-mail, scans",
        accept_multiple_files="directory" if what == "A folder" else True,
        key=key,
        on_change=_take,
        args=(library, key, tuple(chosen)),
    )


def _take(library: Library, key: str, tags: tuple[str, ...]) -> None:
    """Orders what has come, and empties the uploader."""
    uploads = here().uploads
    taken = 0
    for file in st.session_state.get(key) or ():
        parts = file.name.replace("\\", "/").split("/")
        upload = uploads.from_page(parts[-1], file.getvalue())
        if any(part.startswith(".") for part in parts):
            uploads.remove(upload.id)  # a system's own files within a folder
            continue
        library.jobs.add(upload, tags=tags)
        taken += 1
    st.session_state[_TURN] += 1
    if taken:
        st.toast(
            f"{taken} {'file has' if taken == 1 else 'files have'} come", icon=":material/check:"
        )


def first_run(library: Library) -> None:
    """What an empty library offers."""
    with st.container(border=True):
        st.subheader("Nothing here yet")
        st.write(
            f"Drop documents above, or begin with the sample book, *{TITLE}* by {AUTHOR}. "
            "Three questions to ask it; the last one it does not answer:"
        )
        for question in QUESTIONS:
            st.html(block(question, kind="gt-quote"))
        missing = missing_models(here().settings)
        if missing:
            st.caption(label(f"Fetches what is needed first: {models_in_words(missing)}."))
        if st.button("Read the sample book", type="primary", icon=":material/menu_book:"):
            for name in missing:
                library.jobs.fetch(name)
            with sample_book() as path:
                library.jobs.add_file(path)
            st.rerun()


def models_in_words(names: Sequence[str]) -> str:
    """Models with their sizes."""
    return " and ".join(f"{name} ({size(size_of(name))})" for name in names)
