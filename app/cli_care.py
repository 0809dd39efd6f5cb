"""``gistree check``, ``backup`` and ``restore``."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli_options import JsonOption, LibraryOption, print_json


def check(
    library: LibraryOption = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make what is derived again where it is wrong.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look a library over: files, texts, vectors, indexes. Exit code 1 where a flaw is left."""
    from dataclasses import asdict

    from app.library import open_library
    from app.terminal import out, plain

    with open_library(library, read_only=not repair) as lib:
        names = {entry.id: entry.name for entry in lib.list()}
        flaws = []
        for flaw in lib.check(repair=repair):
            flaws.append(flaw)
            if not as_json:
                about = f"{names.get(flaw.document_id, flaw.document_id[:12])}: "
                line = f"{about if flaw.document_id else ''}{flaw.what}"
                out.print(plain(f"{'repaired: ' if flaw.repaired else ''}{line}"), soft_wrap=True)
    left = [flaw for flaw in flaws if not flaw.repaired]
    if as_json:
        print_json({"documents": len(names), "flaws": [asdict(flaw) for flaw in flaws]})
    else:
        out.print(f"{len(names):,} documents looked at, {len(left)} flaws left")
        if any(flaw.derived for flaw in left) and not repair:
            out.print("gistree check --repair puts right what is derived")
    if left:
        raise typer.Exit(1)


def backup(
    file: Annotated[Path, typer.Argument(help="The backup to write, for example library.tar.")],
    library: LibraryOption = None,
) -> None:
    """Write a library to one file; others may go on using it."""
    from app.library import open_library
    from app.terminal import out, plain

    with open_library(library, read_only=True) as lib:
        count = lib.backup(file)
    out.print(plain(f"{count:,} documents in {file}"))


def restore(
    file: Annotated[Path, typer.Argument(help="What `gistree backup` wrote.")],
    library: Annotated[Path, typer.Option("--library", "-l", help="Folder of the new library.")],
) -> None:
    """Make a library from a backup, which is checked first."""
    from app.backup import restore as bring_back
    from app.terminal import out, plain

    out.print(plain(f"{bring_back(file, library):,} documents in {library}"))
