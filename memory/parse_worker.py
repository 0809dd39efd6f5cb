"""The child process that reads one file: runs its parser and writes the parts to standard output.

Started by ``memory.parse_process`` only. It imports little, so that a small file is read at once.
"""

import faulthandler
import os
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypedDict

from memory.blocks import Part
from memory.errors import DocumentError
from memory.sandbox import fence
from memory.wire import Failed, Finished, to_line
from serving.errors import MissingExtra
from serving.plugins import load


class Request(TypedDict):
    """What the parent asks for, on standard input and so not in the list of processes."""

    path: str
    name: str
    parser: str
    password: str | None
    folder: str
    parent: int
    memory_bytes: int


def main(request: Request) -> None:
    """Reads the file, and says how it went."""
    faulthandler.enable()
    # What libraries print goes to standard error; standard output is the parent's alone.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        fence(
            Path(request["folder"]),
            parent=request["parent"],
            memory_bytes=request["memory_bytes"],
        )
        threading.Thread(target=_end_with_input, daemon=True).start()
        out.write(to_line(_work(request, out)))
    os._exit(0)  # nothing is left to do, and libraries that end badly must not spoil it


def _work(request: Request, out: BinaryIO) -> Finished | Failed:
    try:
        for part in _parts(request):
            out.write(to_line(part))
            out.flush()  # what was read before a crash is kept
    except MemoryError as error:
        return Failed(type(error).__name__, "")
    except MissingExtra as error:
        return Failed(type(error).__name__, str(error), error.extra)
    except DocumentError as error:
        return Failed(type(error).__name__, str(error))
    except Exception as error:  # a fault of the parser, which the parent explains
        traceback.print_exc()
        return Failed(type(error).__name__, str(error))
    return Finished()


def _parts(request: Request) -> Iterator[Part]:
    path = Path(request["path"])
    parser = request["parser"]
    if not parser:
        from memory.formats import sniff

        parser = sniff(path)
    yield from load("memory.parsers", parser)().parse(path, password=request["password"])


def _end_with_input() -> None:
    """Ends the process once its parent has gone and so closed the pipe."""
    while os.read(0, 64):
        pass
    os._exit(1)
