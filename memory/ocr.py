"""Reading pictures of text: RapidOCR on ONNX Runtime, with the models that ship in its wheel."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from memory.pdf_words import Run

MAX_SIDE = 2000  # pixels; a page of A4 at 170 dots an inch
_MIN_SCORE = 0.5  # a line read with less is left out
_TEXT_IN_BOX = 0.77  # boxes are drawn wide around their text: so much of the height is text
_DOUBTFUL = 0.75  # a page read with less is perhaps turned


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

    max_threads: int = 8
    _engine: Any = field(default=None, repr=False)

    def lines(self, image: Any) -> list[OcrLine]:
        """Lines of text in a picture (uint8 [height, width, 3]), in no certain order."""
        if self._engine is None:
            self._engine = _engine(min(self.max_threads, os.cpu_count() or 1))
        read = self._engine(image, use_cls=False)
        if read.boxes is None or read.txts is None:
            return []
        found = zip(read.boxes.tolist(), read.txts, read.scores, strict=True)
        return [_line(box, text, float(score)) for box, text, score in found if text.strip()]

    def upright_lines(self, image: Any) -> tuple[list[OcrLine], int]:
        """Lines of a picture that may lie on its side or head.

        Returns:
            The lines, and the quarter turns clockwise after which they were read best.
        """
        import numpy

        lines = self.lines(image)
        best, best_turn = lines, 0
        tall = sum(line.height > 1.5 * line.width and len(line.text) > 3 for line in lines)
        if not lines or (confidence(lines) >= _DOUBTFUL and 2 * tall < len(lines)):
            return lines, 0
        for turn in (1, 3, 2):
            turned = self.lines(numpy.ascontiguousarray(numpy.rot90(image, -turn)))
            if _worth(turned) > 1.15 * _worth(best):
                best, best_turn = turned, turn
            if best_turn and confidence(best) > 0.9:
                break
        return best, best_turn


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
    usual = median(line.height for line in lines) * _TEXT_IN_BOX / scale
    found = []
    for line in lines:
        x, y = (line.x * cos + line.y * sin) / scale, (line.y * cos - line.x * sin) / scale
        height = line.height * _TEXT_IN_BOX / scale
        width = max(line.width / scale - 0.6 * height, 0.5 * height)
        # The height of a box depends on which letters are in it; near the usual one, it is that.
        size = usual if abs(height - usual) < 0.3 * usual else height
        x0, x1, top, bottom = x - width / 2, x + width / 2, y - height / 2, y + height / 2
        found.append(Run(line.text, x0, x1, top, bottom, y + 0.3 * height, size))
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


def _worth(lines: Sequence[OcrLine]) -> float:
    return sum(line.score**2 * len(line.text) for line in lines)
