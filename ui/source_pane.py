"""The source beside the chat: turn pages, zoom, search, see where a quote stands."""

from pathlib import Path

import streamlit as st

from app.source_view import Source
from app.types import DocumentError, DocumentNotFound, GistreeError, Span
from ui.here import here
from ui.opened import Opened, close_source
from ui.safe import block, inline, label

_PARTS = Path(__file__).parent / "parts"
_MOUNT = st.components.v2.component(
    "gistree_source",
    js=(_PARTS / "source.js").read_text(encoding="utf-8"),
    css=(_PARTS / "source.css").read_text(encoding="utf-8"),
)
_PIXELS = 1_100
_ZOOMS = (50, 75, 100, 125, 150, 200, 300)
_THUMBNAILS = 7


@st.fragment
def source_pane(opened: Opened) -> None:
    """Shows a document at a place. Turning its pages runs this part of the page only."""
    try:
        _pane(here().library.sources.open(opened.document), opened)
    except DocumentNotFound:
        st.info("This document is no longer in the library.", icon=":material/delete:")
        st.button("Close", on_click=close_source, key="source-gone")
    except (GistreeError, OSError) as error:
        st.error(label(str(error)), icon=":material/error:")


def _pane(source: Source, opened: Opened) -> None:
    _follow(source, opened)
    _head(source)
    _turning(source)
    hits = _search(source)
    _view(source, opened, hits)


def _follow(source: Source, opened: Opened) -> None:
    """Turns to the place that was clicked last, once."""
    state = st.session_state
    if state.get("source_token") != opened.token or "source_page" not in state:
        state.source_token = opened.token
        state.source_page = source.part_of(opened.span) + 1
        state.source_words = ""
        state.source_hit = 0
    state.setdefault("source_zoom", 100)
    state.source_page = min(max(int(state.source_page), 1), len(source.parts))


def _head(source: Source) -> None:
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        st.html(
            f'<div class="gt-source-title">{inline(source.document.title)}</div>', width="stretch"
        )
        st.button(
            "Close",
            icon=":material/close:",
            type="tertiary",
            key="source-close",
            on_click=close_source,
        )


def _turning(source: Source) -> None:
    state, total = st.session_state, len(source.parts)
    paged = source.document.paged
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Previous page" if paged else "Previous part",
            icon=":material/chevron_left:",
            help="Previous (left arrow)",
            key="gt-icon-previous",
            disabled=state.source_page <= 1,
            on_click=_turn_to,
            args=(state.source_page - 1,),
        )
        st.number_input(
            "Page" if paged else "Part",
            min_value=1,
            max_value=total,
            step=1,
            key="source_page",
            label_visibility="collapsed",
            width=90,
        )
        st.html(f'<span class="gt-muted">of {total:,}</span>', width="content")
        st.button(
            "Next page" if paged else "Next part",
            icon=":material/chevron_right:",
            help="Next (right arrow)",
            key="gt-icon-next",
            disabled=state.source_page >= total,
            on_click=_turn_to,
            args=(state.source_page + 1,),
        )
        for name, icon, step in (("out", "zoom_out", -1), ("in", "zoom_in", 1)):
            st.button(
                f"Zoom {name}",
                icon=f":material/{icon}:",
                help=f"Zoom {name} ({state.source_zoom} %)",
                key=f"gt-icon-zoom-{name}",
                disabled=state.source_zoom == (_ZOOMS[0] if step < 0 else _ZOOMS[-1]),
                on_click=_zoom,
                args=(step,),
            )


def _search(source: Source) -> list[Span]:
    """The field and, where it holds words, a way through what they found."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.text_input(
            "Search in this document",
            key="source_words",
            placeholder="Search in this document",
            label_visibility="collapsed",
            icon=":material/search:",
            on_change=_first_hit,
            args=(source,),
            width=220,
        )
        if source.has_pictures:
            st.toggle("Text", key="source_as_text", help="The page's text instead of its picture")
            st.toggle("Thumbnails", key="source_thumbnails")
        words = state.source_words
        if not words.strip():
            return []
        hits = [hit.span for hit in source.find(words)]
        if not hits:
            st.html('<span class="gt-muted" role="status">not found</span>', width="content")
            return []
        number = min(state.source_hit, len(hits) - 1)
        st.button(
            "Previous place",
            icon=":material/keyboard_arrow_up:",
            help="Previous place",
            key="gt-icon-hit-previous",
            on_click=_show_hit,
            args=(source, hits, number - 1),
        )
        st.button(
            "Next place",
            icon=":material/keyboard_arrow_down:",
            help="Next place",
            key="gt-icon-hit-next",
            on_click=_show_hit,
            args=(source, hits, number + 1),
        )
        st.html(
            f'<span class="gt-muted" role="status">{number + 1:,} of {len(hits):,}</span>',
            width="content",
        )
    return hits


def _view(source: Source, opened: Opened, hits: list[Span]) -> None:
    state = st.session_state
    part = state.source_page - 1
    marks = [hits[min(state.source_hit, len(hits) - 1)]] if hits else [opened.span]
    name = f"Page {part + 1}" if source.document.paged else f"Part {part + 1}"
    where = source.label(part)
    st.html(block(where or name, kind="gt-muted gt-one-line"))
    sheet = None
    zoom = state.source_zoom
    if source.has_pictures and not state.get("source_as_text"):
        try:
            shown = source.sheet(
                part, width_pixels=_PIXELS if zoom <= 125 else 2 * _PIXELS, marks=marks
            )
            sheet = {
                "png": shown.picture.png,
                "width": shown.picture.width,
                "height": shown.picture.height,
                "highlights": [list(box) for box in shown.highlights],
            }
            if not shown.highlights and any(mark.overlaps(source.parts[part]) for mark in marks):
                st.caption("The place cannot be marked in the picture; its text shows it.")
        except DocumentError as error:
            st.caption(label(f"{error}. Its text:"))
    _MOUNT(
        key="source-view",
        data={
            "sheet": sheet,
            "paragraphs": []
            if sheet
            else [
                {"level": p.level, "runs": [list(run) for run in p.runs]}
                for p in source.paragraphs(part, marks)
            ],
            "thumbnails": _thumbnails(source, part),
            "part": part,
            "total": len(source.parts),
            "zoom": zoom,
            "name": f"{source.document.title}, {name}",
            "opened": opened.token,
            "token": f"{opened.token}/{part}/{marks[0].start}/{sheet is None}",
        },
        on_turned_change=_turned,
    )


def _thumbnails(source: Source, part: int) -> list[dict[str, object]]:
    if not source.has_pictures or not st.session_state.get("source_thumbnails"):
        return []
    first = max(0, min(part - _THUMBNAILS // 2, len(source.parts) - _THUMBNAILS))
    near = range(first, min(first + _THUMBNAILS, len(source.parts)))
    try:
        return [{"number": n + 1, "png": source.thumbnail(n).png} for n in near]
    except DocumentError:
        return []


def _turned() -> None:
    part = st.session_state["source-view"].turned
    if part is not None:
        _turn_to(part + 1)


def _turn_to(page: int) -> None:
    st.session_state.source_page = page


def _zoom(step: int) -> None:
    place = _ZOOMS.index(st.session_state.source_zoom) + step
    st.session_state.source_zoom = _ZOOMS[min(max(place, 0), len(_ZOOMS) - 1)]


def _first_hit(source: Source) -> None:
    """The first place at or behind the page that is open, else the first of all."""
    hits = [hit.span for hit in source.find(st.session_state.source_words)]
    here = source.parts[st.session_state.source_page - 1].start
    behind = next((number for number, hit in enumerate(hits) if hit.start >= here), 0)
    if hits:
        _show_hit(source, hits, behind)


def _show_hit(source: Source, hits: list[Span], number: int) -> None:
    number %= len(hits)
    st.session_state.source_hit = number
    st.session_state.source_page = source.part_of(hits[number]) + 1
