"""The page "Status"."""

import streamlit as st

from ui.guard import guarded


@guarded
def page() -> None:
    """Shows it."""
    st.title("Status")
