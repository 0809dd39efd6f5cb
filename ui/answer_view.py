"""An answer in the page: each claim with its chips, what nothing bears out marked."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.export import sentences_of
from app.types import Answer, Citation

_PARTS = Path(__file__).parent / "parts"
_MOUNT = st.components.v2.component(
    "gistree_answer",
    js=(_PARTS / "answer.js").read_text(encoding="utf-8"),
    css=(_PARTS / "answer.css").read_text(encoding="utf-8"),
)
_PLACE_CHARS = 20
_QUOTE_CHARS = 300


def answer_view(
    answer: Answer,
    *,
    key: str,
    opened: int,
    several: bool,
    on_open: Callable[[Citation], None],
) -> None:
    """Shows it.

    Args:
        answer: What was found.
        key: Of the widget.
        opened: Number of the citation whose source is open, from 1; 0 for none.
        several: Whether the chips need to say which document they are of.
        on_open: Called with the citation whose chip was clicked.
    """

    def clicked() -> None:
        number = st.session_state[key].opened
        if number and 1 <= number <= len(answer.citations):
            on_open(answer.citations[number - 1])

    _MOUNT(
        key=key,
        data={
            "pieces": [
                {
                    "text": text,
                    "unsupported": is_unsupported,
                    "chips": [
                        _chip(answer.citations[number - 1], number, several) for number in numbers
                    ],
                }
                for text, numbers, is_unsupported in sentences_of(answer)
            ],
            "opened": opened,
            "unsupportedMark": "not borne out",
            "unsupportedHelp": "Nothing in the sources bears this sentence out.",
        },
        on_opened_change=clicked,
    )


def short_place(citation: Citation, *, several: bool) -> str:
    """Where a citation is, in few words."""
    if citation.page is not None:
        place = f"p. {citation.page}"
    elif citation.section:
        place = citation.section[-1]
    else:
        place = f"{citation.position:.0%} in"
    place = _cut(place)
    return f"{_cut(citation.title)}, {place}" if several else place


def _cut(text: str) -> str:
    return text if len(text) <= _PLACE_CHARS else text[: _PLACE_CHARS - 1].rstrip() + "…"


def _chip(citation: Citation, number: int, several: bool) -> dict[str, object]:
    return {
        "number": number,
        "place": short_place(citation, several=several),
        "name": f"Citation {number}: {citation.title}, {citation.place}. Open the source.",
        "quote": citation.quote[:_QUOTE_CHARS],
    }
