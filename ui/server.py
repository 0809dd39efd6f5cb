"""The web server of the pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread
from starlette.middleware import Middleware
from streamlit.starlette import App

from app.service import services
from app.uploads import Uploads
from ui.theme import options
from ui.upload_stream import UploadsToDisk

MAX_UPLOAD_MB = 20_000


def serve(*, host: str, port: int, open_browser: bool) -> None:
    """Serves the pages until it is interrupted.

    Args:
        host: Address to listen on.
        port: Likewise.
        open_browser: Open the page in the person's browser.
    """
    services().work()  # what a crash has interrupted goes on before anybody looks
    app = App(
        Path(__file__).with_name("main.py"),
        lifespan=_closing,
        middleware=[Middleware(UploadsToDisk, uploads=_uploads)],
    )
    app.run(
        config=options(host=host, port=port, open_browser=open_browser, max_upload_mb=MAX_UPLOAD_MB)
    )


@asynccontextmanager
async def _closing(_app: App) -> AsyncIterator[None]:
    yield
    await to_thread.run_sync(services().close)


def _uploads() -> Uploads:
    return services().landing
