"""The web server of the pages."""

from pathlib import Path

from streamlit.starlette import App

from ui.theme import options

MAX_UPLOAD_MB = 20_000


def serve(*, host: str, port: int, open_browser: bool) -> None:
    """Serves the pages until it is interrupted.

    Args:
        host: Address to listen on.
        port: Likewise.
        open_browser: Open the page in the person's browser.
    """
    app = App(Path(__file__).with_name("main.py"))
    app.run(
        config=options(host=host, port=port, open_browser=open_browser, max_upload_mb=MAX_UPLOAD_MB)
    )
