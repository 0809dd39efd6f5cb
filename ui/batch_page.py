"""The page "Batch": files of questions answered in the background, watched, fetched."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.batch_orders import (
    ANSWER_FILES,
    QUESTION_FILES,
    latest_answers,
    order_batch,
    result_file,
)
from app.library import Library
from app.reading_choices import reader_choices
from app.types import GistreeError, Job
from ui.activity import activity
from ui.guard import guarded
from ui.here import here, library
from ui.safe import label
from ui.tables import table

_TURN = "batches-ordered"  # counts: a new number is a new, empty form
_SHOWN = 20


@guarded
def page() -> None:
    """Shows it."""
    shelf = library()
    st.title("Batch")
    if shelf.read_only:
        st.info("This library can be read, not changed.", icon=":material/lock:")
        return
    if not shelf.list():
        st.info("The library is empty. Add documents on the page Library.", icon=":material/info:")
        return
    _order(shelf)
    activity(shelf, ("batch",))
    batches = [job for job in reversed(shelf.jobs.list()) if job.kind == "batch"]
    for job in batches:
        _answers(shelf, job, is_newest=job is batches[0])


def _order(shelf: Library) -> None:
    turn = st.session_state.setdefault(_TURN, 0)
    titles = {entry.id: entry.title for entry in shelf.list()}
    readers = [choice.name for choice in reader_choices(shelf.settings.reader)]
    with st.form(f"batch-{turn}"):
        file = st.file_uploader(
            "Questions: CSV, XLSX, JSONL or Parquet, with a column “question”",
            type=QUESTION_FILES,
            key=f"questions-{turn}",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            documents = st.multiselect(
                "Documents", list(titles), format_func=titles.__getitem__, placeholder="all"
            )
            usual = shelf.settings.reader.partition(":")[0]
            reader = st.selectbox(
                "Reader", readers, index=readers.index(usual) if usual in readers else 0
            )
        if st.form_submit_button("Answer them", type="primary") and file is not None:
            _take(shelf, file.name, file.getvalue(), documents, reader)


def _take(shelf: Library, name: str, content: bytes, documents: Sequence[str], reader: str) -> None:
    upload = here().uploads.from_page(name, content)
    try:
        order_batch(shelf, upload, documents=documents, reader=reader)
    except GistreeError as error:
        st.error(label(str(error)), icon=":material/error:")
        return
    st.session_state[_TURN] += 1
    st.rerun()


def _answers(shelf: Library, job: Job, *, is_newest: bool) -> None:
    with st.expander(
        f"Answers: {label(job.name, max_chars=60)}", expanded=is_newest, key=f"answers-{job.id}"
    ):
        st.fragment(_table, run_every=3.0 if job.state in ("queued", "running") else None)(
            shelf, job
        )
        if job.state in ("running", "queued"):
            st.caption("All of them can be downloaded when it has ended or is paused.")
            return
        with st.container(horizontal=True):
            for kind in ANSWER_FILES:
                st.download_button(
                    kind.upper(),
                    data=partial(_result, shelf, job, kind),
                    file_name=f"answers.{kind}",
                    key=f"result-{job.id}-{kind}",
                    icon=":material/download:",
                    on_click="ignore",
                )


def _result(shelf: Library, job: Job, kind: str) -> bytes:
    return result_file(shelf, job, kind).read_bytes()


def _table(shelf: Library, job: Job) -> None:
    rows = latest_answers(shelf, job, most=_SHOWN)
    if not rows:
        st.caption("No answer yet.")
        return
    st.html(
        table(
            [
                (row.get("question", ""), row.get("answer") or row.get("error") or "", _places(row))
                for row in rows
            ],
            head=("question", "answer", "where"),
        )
    )


def _places(row: dict[str, object]) -> str:
    citations = row.get("citations")
    if not isinstance(citations, list):
        return ""
    return "\n".join(f"{one['title']}, {_place(one)}" for one in citations[:3])


def _place(citation: Mapping[str, Any]) -> str:
    """The page, or where there are none the section, or how far in."""
    page = citation["label"] or citation["page"]
    if page:
        return f"page {page}"
    section = citation["section"]
    return str(section[-1]) if section else f"{citation['position']:.0%} in"
