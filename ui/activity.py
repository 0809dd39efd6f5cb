"""Work in the background, as the person sees it: how far it is, what went wrong, what to do."""

import time
from collections.abc import Callable, Collection

import streamlit as st

from app.jobs import Jobs
from app.library import Library
from app.overview import size, time_left
from app.progress import UNITS
from app.types import Job
from ui.safe import block, label

_LIVE_S = 1.0
_IDLE_S = 4.0
_SHOWN_DONE_S = 60.0
_LASTING = ("batch",)  # stay until they are dismissed
_MOST_WAITING = 5

_STAGES = {
    "copy": "Copying",
    "read": "Reading",
    "embed": "Indexing",
    "wait": "Waiting for another process",
    "fetch": "Fetching",
    "ask": "Asking",
}


def activity(library: Library, kinds: Collection[str]) -> None:
    """The jobs, kept up to date; the page around is drawn anew when a document has come or gone.

    Args:
        library: Whose.
        kinds: Those of these kinds.
    """
    every = _LIVE_S if _live(library.jobs) else _IDLE_S
    st.session_state["seen-state"] = _state(library)
    st.fragment(_shown, run_every=every)(library, kinds)


def _live(jobs: Jobs) -> bool:
    return any(job.state in ("queued", "running", "cancelling") for job in jobs.list())


def _state(library: Library) -> tuple[object, ...]:
    """What the page around the jobs depends on."""
    jobs = library.jobs.list()
    leaving = {job.id for job in jobs if job.kind == "delete"}
    return (len(library.list()), frozenset(leaving), _live(library.jobs), bool(jobs))


def _shown(library: Library, kinds: Collection[str]) -> None:
    if _state(library) != st.session_state.get("seen-state"):
        st.rerun()
    jobs = [job for job in library.jobs.list() if job.kind in kinds]
    now = time.time()
    for job in jobs:
        if job.kind == "delete" and job.state == "queued":
            _undo(library.jobs, job, now)
    shown = [
        job
        for job in jobs
        if job.kind != "delete"
        and not (
            job.state == "done"
            and job.kind not in _LASTING
            and now - job.changed_at.timestamp() > _SHOWN_DONE_S
        )
    ]
    waiting = [job for job in shown if job.state == "queued"]
    for job in shown:
        if job.state != "queued" or job in waiting[:_MOST_WAITING]:
            _job(library.jobs, job)
    if len(waiting) > _MOST_WAITING:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.write(f"{len(waiting) - _MOST_WAITING} more wait.")
            if st.button("Cancel all that wait", key="cancel-waiting"):
                for job in waiting:
                    library.jobs.cancel(job.id)
                st.rerun(scope="fragment")


def _undo(jobs: Jobs, job: Job, now: float) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        left = max(0, round(job.not_before - now))
        st.html(block(f"Deleted: {job.name}"), width="stretch")
        st.button(
            f"Undo ({left} s)",
            key=f"undo-{job.id}",
            icon=":material/undo:",
            on_click=_do,
            args=(jobs.cancel, job.id),
        )


def _job(jobs: Jobs, job: Job) -> None:
    with st.container(border=True, key=f"job-{job.id}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.html(
                block(job.name, kind="gt-title") + block(_standing(job), kind="gt-muted"),
                width="stretch",
            )
            _buttons(jobs, job)
        if job.state == "running":
            st.progress(_share(job), text=label(_how_far(job)))
        elif job.state == "failed" and job.error == "PasswordNeeded":
            _password(jobs, job)
        elif job.state == "failed":
            st.error(label(job.said), icon=":material/error:")


def _standing(job: Job) -> str:
    if job.state == "done":
        return f"✓ {job.said}"
    words = {"queued": "Waits", "paused": "Paused", "cancelling": "Being cancelled …"}
    return words.get(job.state, "")


def _buttons(jobs: Jobs, job: Job) -> None:
    def button(name: str, icon: str, does: Callable[[str], bool]) -> None:
        st.button(
            name,
            key=f"{name}-{job.id}",
            icon=f":material/{icon}:",
            type="tertiary",
            on_click=_do,
            args=(does, job.id),
        )

    if job.state in ("queued", "running"):
        button("Pause", "pause", jobs.pause)
    if job.state == "paused":
        button("Go on", "play_arrow", jobs.resume)
    if job.state in ("queued", "running", "paused"):
        button("Cancel", "close", jobs.cancel)
    if job.state == "failed" and job.error != "PasswordNeeded":
        button("Try again", "refresh", jobs.retry)
    if job.state in ("failed", "done"):
        button("Dismiss", "close", jobs.dismiss)


def _do(does: Callable[[str], bool], job_id: str) -> None:
    """A button's deed; what it would change may have changed meanwhile, which is as well."""
    does(job_id)


def _password(jobs: Jobs, job: Job) -> None:
    st.warning(label(job.said.partition(";")[0]), icon=":material/lock:")
    with (
        st.form(f"password-{job.id}", border=False, clear_on_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        given = st.text_input("Password of this document", type="password", key=f"pw-{job.id}")
        if st.form_submit_button("Open it") and given:
            jobs.retry(job.id, password=given)
            st.rerun(scope="fragment")


def _share(job: Job) -> float:
    return min(1.0, job.done / job.total) if job.total else 0.0


def _how_far(job: Job) -> str:
    stage = _STAGES.get(job.stage, "Starting")
    unit = UNITS.get(job.stage, "")
    if unit == "bytes":
        far = f"{size(job.done)} of {size(job.total)}" if job.total else size(job.done)
    elif job.total:
        far = f"{job.done:,} of {job.total:,} {unit}"
    else:
        far = f"{job.done:,} {unit}" if job.done else ""
    left = f", about {time_left(job.seconds_left)} left" if job.seconds_left is not None else ""
    return f"{stage} {far}{left}".strip()
