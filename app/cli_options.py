"""What several commands share: options, and how JSON is printed."""

import json
import sys
from typing import Annotated, Any

import typer

LibraryOption = Annotated[
    str | None,
    typer.Option("--library", "-l", help="Folder or database URL; default: the settings' one."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DocOption = Annotated[
    list[str] | None,
    typer.Option("--doc", "-d", help="Only this document: id, name or title. May be repeated."),
]


def print_json(value: Any) -> None:
    """Prints one JSON value on standard output."""
    # Elsewhere than in UTF-8 a letter might not be encodable; as an escape it always is.
    escape = sys.stdout.encoding.lower() not in ("utf-8", "utf8")
    sys.stdout.write(json.dumps(value, ensure_ascii=escape, indent=2) + "\n")
