"""``gistree mcp``: the library for programs that speak the Model Context Protocol."""

from typing import Annotated

import typer

from app.cli_options import DocOption, LibraryOption


def mcp(
    library: LibraryOption = None,
    doc: DocOption = None,
    reader: Annotated[str | None, typer.Option(help="How ``ask`` reads.")] = None,
) -> None:
    """Serve the library to an MCP client, over standard input and output; for reading only."""
    from app.library import open_library
    from app.mcp import serve
    from serving.plugins import make

    if reader is not None:
        make("agents.readers", reader)  # says what is wrong with it before anything is loaded
    with open_library(library, read_only=True) as lib:
        serve(lib, documents=doc, reader=reader)
