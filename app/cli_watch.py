"""``gistree watch``: folders whose files become documents."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli_options import JsonOption, LibraryOption


def watch(
    folders: Annotated[list[Path], typer.Argument(help="Folders.")],
    library: LibraryOption = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="A file that goes takes its document with it.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Catch up, and end.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Files read at a time.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Add what comes into folders, read anew what changes; Ctrl-C ends it."""
    from threading import Event as Stop

    from app import watch as watching
    from app.library import open_library
    from app.terminal import err, out, plain

    with open_library(library) as lib:
        lib.finish_interrupted()
        keeper = watching.Watch(lib, folders, delete=delete, workers=workers)
        if not once:
            err.print(plain(f"watching {', '.join(map(str, folders))}; Ctrl-C ends it"))
        for event in keeper.catch_up() if once else keeper.follow(Stop()):
            line = watching.as_json(event) if as_json else str(event)
            out.print(plain(line), soft_wrap=True)
