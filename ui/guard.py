"""A page's failures become words in the page."""

import logging
from collections.abc import Callable
from functools import wraps

import streamlit as st

from app.types import GistreeError
from ui.safe import label

log = logging.getLogger(__name__)


def guarded(page: Callable[[], None]) -> Callable[[], None]:
    """The page, with what gistree explains shown where it happened."""

    @wraps(page)
    def shown() -> None:
        try:
            page()
        except (GistreeError, OSError) as error:
            log.warning("page %s: %s", page.__module__, error)
            st.error(label(str(error)), icon=":material/error:")

    return shown
