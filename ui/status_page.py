"""The page "Status": the models, the library, the machine, and what would make answers better."""

import streamlit as st

from app.doctor import Finding, examine
from app.library import Library
from app.overview import size
from app.settings import Settings
from app.status import ModelLine, examine_library, model_lines
from app.types import GistreeError
from ui.activity import activity
from ui.guard import guarded
from ui.here import here
from ui.safe import block, label
from ui.tables import table

_AUTO = "auto"
_FRESH_S = 20.0


@guarded
def page() -> None:
    """Shows it."""
    settings, library = here().settings, here().library
    st.title("Status")
    activity(library, ("fetch", "measure"))
    findings = _machine(settings.model_dump_json())
    _advice(library, findings)
    _models(library, settings, model_lines(settings))
    st.subheader("This library")
    st.html(_as_table(examine_library(library)))
    st.subheader("This machine")
    st.html(_as_table([finding for finding in findings if finding.what != "library"]))
    st.caption("The same in a terminal: gistree doctor")


@st.cache_data(ttl=_FRESH_S, show_spinner="Looking at this machine …")
def _machine(settings_json: str) -> list[Finding]:
    return examine(Settings.model_validate_json(settings_json), measure=False)


def _as_table(findings: list[Finding]) -> str:
    rows = [(f.what, f"{f.value}\n→ {f.advice}" if f.advice else f.value) for f in findings]
    return table(rows, head=("what", "found"))


def _advice(library: Library, findings: list[Finding]) -> None:
    """What can be mended with one click."""
    for finding in findings:
        if finding.model_to_fetch:
            with st.container(border=True, horizontal=True, vertical_alignment="center"):
                st.html(block(f"{finding.what}: {finding.value}"), width="stretch")
                _fetch_button(library, finding.model_to_fetch)


def _fetch_button(library: Library, model: str) -> None:
    st.button(
        "Fetch it",
        key=f"advised-{model}",
        icon=":material/download:",
        help=label(f"Fetch {model}"),
        on_click=_fetch,
        args=(library, model),
    )


def _fetch(library: Library, model: str) -> None:
    library.jobs.fetch(model)


def _models(library: Library, settings: Settings, lines: tuple[ModelLine, ...]) -> None:
    st.subheader("Language model")
    cached = [line.name for line in lines if line.is_llm and line.is_here]
    known = [_AUTO, *cached]
    if settings.model not in known:
        known.append(settings.model)
    with st.form("use-model", border=False):
        chosen = st.selectbox(
            "The model that answers",
            known,
            index=known.index(settings.model),
            format_func=lambda name: "auto: the best one here" if name == _AUTO else name,
        )
        other = st.text_input(
            "Or a server, or a file",
            placeholder="http://host:8000, or /path/to/a/model.gguf",
        )
        with st.container(horizontal=True):
            used = st.form_submit_button("Use it", type="primary")
            measured = st.form_submit_button("Measure its pace", icon=":material/speed:")
    if used:
        try:
            here().use_model(other.strip() or chosen)
        except GistreeError as error:
            st.error(label(str(error)), icon=":material/error:")
        else:
            st.rerun()
    if measured:
        library.jobs.measure()
        st.rerun()
    with st.expander("All models"):
        for line in lines:
            _model(library, line)


def _model(library: Library, line: ModelLine) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        facts = f"{line.what} · {size(line.size_bytes)} · {line.window:,} tokens · {line.licence}"
        standing = "in use" if line.is_used else "here" if line.is_here else ""
        st.html(
            block(line.title, kind="gt-title")
            + block(" · ".join(filter(None, (line.name, facts, standing))), kind="gt-muted"),
            width="stretch",
        )
        if not line.is_here:
            st.button(
                "Fetch",
                key=f"fetch-{line.name}",
                icon=":material/download:",
                type="tertiary",
                help=label(f"Fetch {line.title}"),
                on_click=_fetch,
                args=(library, line.name),
            )
