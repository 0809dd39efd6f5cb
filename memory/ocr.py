"""Reading pictures of text: RapidOCR on ONNX Runtime, with the models that ship in its wheel."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from memory.pdf_words import Run, even

MAX_SIDE = 2000  # pixels; a page of A4 at 170 dots an inch
_MIN_SCORE = 0.5  # a line read with less is left out
_TEXT_IN_BOX = 0.77  # boxes are drawn wide around their text: so much of the height is text
_LINES_JUDGED = 7  # to tell which way up a page is


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A line as it was read.

    Attributes:
        text: What it says.
        score: How sure that is, 0 to 1.
        x, y: Its middle, in pixels.
        width, height: Along and across its own direction, in pixels.
        slope: Of its direction, in radians; positive runs downwards.
    """

    text: str
    score: float
    x: float
    y: float
    width: float
    height: float
    slope: float


@dataclass(slots=True)
class Ocr:
    """The engine, made when the first picture comes (about two seconds).

    Attributes:
        max_threads: At most so many, and never more than there are cores.
    """

    max_threads: int = 4
    _engine: Any = field(default=None, repr=False)

    def lines(self, image: Any) -> list[OcrLine]:
        """Lines of text in a picture (uint8 [height, width, 3]), in no certain order."""
        if self._engine is None:
            self._engine = _engine(min(self.max_threads, os.cpu_count() or 1))
        read = self._engine(image, use_det=True, use_cls=False, use_rec=True)
        if read.boxes is None or read.txts is None:
            return []
        found = zip(read.boxes.tolist(), read.txts, read.scores, strict=True)
        return [_line(box, text, float(score)) for box, text, score in found if text.strip()]

    def upright_lines(self, image: Any) -> tuple[list[OcrLine], int]:
        """Lines of a picture that may lie on its side or head.

        Returns:
            The lines, and the quarter turns clockwise that make the picture upright.
        """
        import numpy

        turn = 0
        lines = self.lines(image)
        tall = sum(line.height > 1.5 * line.width and len(line.text) > 3 for line in lines)
        if lines and 2 * tall >= len(lines):
            turn, image = 1, numpy.ascontiguousarray(numpy.rot90(image, -1))
            lines = self.lines(image)
        if self._is_on_its_head(image, lines):
            turn, image = turn + 2, numpy.ascontiguousarray(numpy.rot90(image, 2))
            lines = self.lines(image)
        return lines, turn

    def _is_on_its_head(self, image: Any, lines: Sequence[OcrLine]) -> bool:
        """Whether most of the longest lines are; the recogniser reads them all the same."""
        judged = turned = 0
        for line in sorted(lines, key=lambda line: -line.width)[:_LINES_JUDGED]:
            top, bottom = line.y - line.height / 2, line.y + line.height / 2
            left, right = line.x - line.width / 2, line.x + line.width / 2
            strip = image[max(int(top), 0) : int(bottom) + 1, max(int(left), 0) : int(right) + 1]
            if line.width > 3 * line.height and strip.size:
                said = self._engine(strip, use_det=False, use_cls=True, use_rec=False).cls_res
                judged += 1
                turned += bool(said) and said[0][0] == "180"
        return 2 * turned > judged


def confidence(lines: Sequence[OcrLine]) -> float:
    """How surely a page was read: the mean over its letters, 0 to 1."""
    letters = sum(len(line.text) for line in lines)
    return sum(line.score * len(line.text) for line in lines) / letters if letters else 0.0


def runs(lines: Sequence[OcrLine], *, scale: float) -> list[Run]:
    """Lines as runs in points, the page's slant taken out.

    Args:
        lines: Of one page, in pixels.
        scale: Pixels a point.
    """
    if not lines:
        return []
    slant = median(
        line.slope for line in sorted(lines, key=lambda n: -n.width)[: len(lines) // 2 + 1]
    )
    cos, sin = math.cos(slant), math.sin(slant)
    found = []
    for line in lines:
        x, y = (line.x * cos + line.y * sin) / scale, (line.y * cos - line.x * sin) / scale
        height = line.height * _TEXT_IN_BOX / scale
        width = max(line.width / scale - 0.6 * height, 0.5 * height)
        x0, x1, top, bottom = x - width / 2, x + width / 2, y - height / 2, y + height / 2
        found.append(Run(line.text, x0, x1, top, bottom, y + 0.3 * height, height))
    even(found)
    return found


def _engine(threads: int) -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": MAX_SIDE,
            "Global.text_score": _MIN_SCORE,
            "Global.use_cls": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _line(box: list[list[float]], text: str, score: float) -> OcrLine:
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = box
    width = (math.hypot(x1 - x0, y1 - y0) + math.hypot(x2 - x3, y2 - y3)) / 2
    height = (math.hypot(x3 - x0, y3 - y0) + math.hypot(x2 - x1, y2 - y1)) / 2
    slope = math.atan2(y1 - y0 + y2 - y3, x1 - x0 + x2 - x3)
    return OcrLine(
        text, score, (x0 + x1 + x2 + x3) / 4, (y0 + y1 + y2 + y3) / 4, width, height, slope
    )
