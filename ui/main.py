"""The script that Streamlit runs for each view: the frame, and the page that was chosen in it."""

from pathlib import Path

import streamlit as st

from app.service import services
from ui import batch_page, library_page, memory_page, read_page, status_page
from ui.here import is_logged_in
from ui.login import login, who
from ui.theme import STYLE


def main() -> None:
    """Draws one page."""
    # A file of ours: a named icon would be fetched from a server elsewhere.
    icon = Path(__file__).with_name("icon.svg")
    st.set_page_config(page_title="gistree", page_icon=icon, layout="wide")
    st.html(STYLE)
    if services().wants_login and not is_logged_in():
        login()
        return
    chosen = st.navigation(
        [
            st.Page(
                library_page.page,
                title="Library",
                icon=":material/library_books:",
                url_path="library",
                default=True,
            ),
            st.Page(read_page.page, title="Read", icon=":material/forum:", url_path="read"),
            st.Page(
                memory_page.page, title="Memory", icon=":material/account_tree:", url_path="memory"
            ),
            st.Page(batch_page.page, title="Batch", icon=":material/table_rows:", url_path="batch"),
            st.Page(
                status_page.page, title="Status", icon=":material/monitoring:", url_path="status"
            ),
        ],
        position="top",
    )
    if services().wants_login:
        who()
    chosen.run()


main()
