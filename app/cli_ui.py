"""``gistree ui``: the web page."""

import errno
import importlib
import importlib.util
import os
import socket
from typing import Annotated

import typer

from app.cli_options import LibraryOption
from serving.errors import GistreeError, MissingExtra

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765


class PortTaken(GistreeError):
    """The address that was asked for cannot be listened on."""


def ui(
    library: LibraryOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others can reach it at 0.0.0.0.")
    ] = DEFAULT_HOST,
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535)] = DEFAULT_PORT,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open the web page: upload, watch it being read, ask, check each answer in the document."""
    if library is not None:
        os.environ["GISTREE_LIBRARY"] = library  # the pages read the settings by themselves
    serve(host=host, port=port, open_browser=browser)


def serve(*, host: str, port: int, open_browser: bool) -> None:
    """Serves the page until it is interrupted.

    Raises:
        MissingExtra: Streamlit is not installed.
        PortTaken: something else listens there, or the address is not this machine's.
    """
    if importlib.util.find_spec("streamlit") is None:
        raise MissingExtra("the web page", "ui")
    from app.settings import Settings

    if Settings().libraries and importlib.util.find_spec("authlib") is None:
        raise MissingExtra("logging in (GISTREE_LIBRARIES)", "login")
    check_port(host, port)
    # The page lies outside the command line, so it is named here, not imported.
    importlib.import_module("ui.server").serve(host=host, port=port, open_browser=open_browser)


def check_port(host: str, port: int) -> None:
    """Says so where nobody could listen at that address."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # elsewhere this would let two share a port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"something listens at {host}:{port} already; if it is gistree, open "
                f"http://{host}:{port}, else take another port: gistree ui --port {port + 1}"
            ) from error
        raise PortTaken(
            f"the page cannot be served at {host}:{port}: {error.strerror or error}; "
            "give another address with --host and --port"
        ) from error
