"""Episodes: a document cut where its matter changes, without a model's help.

ReadAgent's pages (arXiv:2402.09727) end at natural breaks. Here a break is where a section begins
or where the meaning drifts, as EM-LLM (arXiv:2407.09450) parts events at surprise; the drift is
read off the vectors that searching has anyway. Which breaks are taken is then solved exactly.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.document import Document, Span
from memory.sentences import cut_before
from memory.wordcount import count_words

_SECTION = 3.0  # what the beginning of a section is worth, in standard deviations of the drift
_PARAGRAPH = 0.5
_TOO_SHORT = 8.0
_UNEVEN = 1.0
_AROUND = 2  # units on each side that the drift compares


def drift_episodes(
    document: Document,
    chunks: Sequence[Span],
    vectors: NDArray[np.float32] | None,
    *,
    min_words: int,
    max_words: int,
) -> tuple[Span, ...]:
    """Episodes that tile the document: no gap, no overlap, in order.

    Args:
        document: What to cut.
        chunks: Its chunks, ascending: where they begin it may be cut.
        vectors: Unit vectors of the chunks, [len(chunks), dim]; None goes by sections alone.
        min_words: Fewest words of an episode, where there are as many.
        max_words: Most words of one, always.
    """
    units = _units(document, chunks, max_words)
    if not units:
        return ()
    words = [count_words(unit.of(document.text)) for unit in units]
    gains = _gains(document, units, chunks, vectors)
    cuts = _best_cuts(words, gains, min_words=min_words, max_words=max_words)
    starts = [units[cut].start for cut in cuts]
    ends = [*starts[1:], len(document.text)]
    return tuple(Span(start, end) for start, end in zip(starts, ends, strict=True))


def tiled(text: str, starts: Sequence[int], max_words: int) -> list[Span]:
    """The text cut at these places, and again wherever a piece has more than ``max_words``."""
    if not text:
        return []
    edges = sorted({0, *(start for start in starts if 0 < start < len(text))})
    pieces: list[Span] = []
    rest = [Span(a, b) for a, b in zip(edges, [*edges[1:], len(text)], strict=True)][::-1]
    while rest:
        piece = rest.pop()
        if len(piece) < 2 or count_words(piece.of(text)) <= max_words:
            pieces.append(piece)
            continue
        cut = cut_before(text, piece, piece.start + max(1, 2 * len(piece) // 3))
        rest += [Span(cut, piece.end), Span(piece.start, cut)]
    return pieces


def _units(document: Document, chunks: Sequence[Span], max_words: int) -> list[Span]:
    """The smallest pieces that are not cut: chunks with the white space behind them."""
    starts = [chunk.start for chunk in chunks[1:]]
    starts += [section.span.start for section in document.sections]
    return tiled(document.text, starts, max_words)


def _gains(
    document: Document,
    units: Sequence[Span],
    chunks: Sequence[Span],
    vectors: NDArray[np.float32] | None,
) -> NDArray[np.float64]:
    """What a break before each unit is worth, [num_units]; 0 is an ordinary one."""
    gains = np.zeros(len(units))
    if vectors is not None and len(vectors) and len(units) > 1:
        starts = [chunk.start for chunk in chunks]
        rows = vectors[[max(bisect_right(starts, unit.start) - 1, 0) for unit in units]]
        drift = np.array([0.0, *(_drift(rows, i) for i in range(1, len(units)))])
        spread = float(drift[1:].std())
        if spread > 0:
            gains[1:] += (drift[1:] - drift[1:].mean()) / spread
    starts = [unit.start for unit in units]
    for section in document.sections:
        place = bisect_right(starts, section.span.start) - 1
        if units[place].start == section.span.start:
            gains[place] += _SECTION / max(section.level, 1)
    for i in range(1, len(units)):
        if "\n" in document.text[units[i].start - 2 : units[i].start]:
            gains[i] += _PARAGRAPH
    return gains


def _drift(rows: NDArray[np.float32], i: int) -> float:
    """How far what follows lies from what came before, 0 to 2."""
    before = rows[max(0, i - _AROUND) : i].sum(axis=0)
    after = rows[i : i + _AROUND].sum(axis=0)
    norms = float(np.linalg.norm(before) * np.linalg.norm(after))
    return 1.0 - float(before @ after) / norms if norms else 0.0


def _best_cuts(
    words: Sequence[int], gains: NDArray[np.float64], *, min_words: int, max_words: int
) -> list[int]:
    """Positions of the units that begin episodes, so that the breaks are worth the most together.

    An episode with too few words costs more than any break is worth, so there is one only where
    nothing else fits; one far from the middle of what is allowed costs a little.
    """
    middle = (min_words + max_words) / 2
    best = np.full(len(words) + 1, -np.inf)
    best[0] = 0.0
    before = [0] * (len(words) + 1)
    for end in range(1, len(words) + 1):
        held = 0
        for start in range(end - 1, -1, -1):
            held += words[start]
            if held > max_words and start < end - 1:
                break
            worth = best[start] + (gains[start] if start else 0.0)
            worth -= _UNEVEN * ((held - middle) / middle) ** 2
            if held < min_words:
                worth -= _TOO_SHORT * (1.0 + 1.0 - held / min_words)
            if worth > best[end]:
                best[end], before[end] = worth, start
    cuts = [len(words)]
    while cuts[-1]:
        cuts.append(before[cuts[-1]])
    return cuts[:0:-1]
