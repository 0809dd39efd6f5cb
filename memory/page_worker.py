"""The child process that draws pages: one request a line, one reply a line.

Started by ``memory.page_process`` only. A hostile file may crash pdfium or make it work for ever;
here it does so behind the fences of ``memory.sandbox``, where it takes nothing else along.
"""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any, TypedDict

from memory.errors import DocumentError
from memory.pdf_boxes import boxes, page_size, render
from memory.sandbox import fence


class Setup(TypedDict):
    """The first line of its standard input."""

    folder: str
    memory_bytes: int


def main(setup: Setup) -> None:
    """Draws until its standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # what libraries print is not for the parent
        fence(Path(setup["folder"]), parent=None, memory_bytes=setup["memory_bytes"])
        for line in sys.stdin:
            out.write(json.dumps(_reply(json.loads(line))) + "\n")
            out.flush()
    os._exit(0)


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    path, page, password = Path(request["path"]), request["page"], request["password"]
    try:
        width, height = page_size(path, page, password=password)
        scale = request["pixels"] / max(width, 1.0)
        png = render(path, page, scale=scale, password=password) if scale else b""
        found = [
            boxes(path, page, quote, occurrence=occurrence, password=password)
            for quote, occurrence in request["quotes"]
        ]
    except (DocumentError, IndexError, MemoryError) as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {
        "png": base64.b64encode(png).decode("ascii"),
        "size": [width, height],
        "boxes": [[[b.left, b.top, b.right, b.bottom] for b in each] for each in found],
    }
