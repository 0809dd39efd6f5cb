"""Pictures of pages, kept within bounds, and the next page drawn before it is asked for."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory.errors import DocumentError
from memory.page_process import PageProcess
from memory.pdf_boxes import Box

CACHE_BYTES = 48 * 2**20


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as a picture.

    Attributes:
        png: Base64.
        width: Of the page in points.
        height: Likewise.
    """

    png: str
    width: float
    height: float


class PagePictures:
    """Draws pages of PDF files in a child process. Safe for many threads."""

    def __init__(self, process: PageProcess | None = None) -> None:
        self._process = process or PageProcess()
        self._pictures: OrderedDict[tuple[Path, int, int], Picture] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the child process and lets the pictures go."""
        self._process.close()
        self.forget(None)

    def forget(self, path: Path | None) -> None:
        """Lets the pictures of a file go; None for those of all."""
        with self._lock:
            for key in [key for key in self._pictures if path is None or key[0] == path]:
                self._bytes -= len(self._pictures.pop(key).png)

    def picture(self, path: Path, page_index: int, *, width_pixels: int) -> Picture:
        """A page.

        Raises:
            DocumentError: the file cannot be opened, or this page cannot be drawn.
        """
        key = (path, page_index, width_pixels)
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
                return self._pictures[key]
        drawn = self._process.draw(path, page_index, width_pixels=width_pixels)
        picture = Picture(drawn.png, drawn.width, drawn.height)
        with self._lock:
            if key not in self._pictures:
                self._pictures[key] = picture
                self._bytes += len(picture.png)
            while self._bytes > CACHE_BYTES and len(self._pictures) > 1:
                self._bytes -= len(self._pictures.popitem(last=False)[1].png)
        return picture

    def draw_ahead(self, path: Path, page_index: int, *, width_pixels: int) -> None:
        """Draws a page in the background, for whoever turns to it next."""

        def work() -> None:
            with suppress(DocumentError):  # who turns to it will be told
                self.picture(path, page_index, width_pixels=width_pixels)

        with self._lock:
            if (path, page_index, width_pixels) in self._pictures:
                return
        threading.Thread(target=work, name="gistree-draw-ahead", daemon=True).start()

    def boxes(
        self, path: Path, page_index: int, quotes: Sequence[tuple[str, int]]
    ) -> tuple[tuple[Box, ...], ...]:
        """Where quotes stand on a page, as ``PageProcess.draw`` tells it."""
        if not quotes:
            return ()
        return self._process.draw(path, page_index, width_pixels=0, quotes=quotes).boxes
