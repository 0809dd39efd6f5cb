"""Sentences as spans: what pruning keeps or drops, and what a citation quotes."""

import re
from collections.abc import Iterable, Iterator

from memory.document import Span

MAX_CHARS = 1_000
"""A longer run without an end of sentence is cut where a clause ends, or at a space."""

_CELL = " | "  # between the cells of a row

# What is segmented at once. Some texts, such as one of nothing but opening quotation marks, take
# the segmenter a time that grows with the square of this.
_WINDOW_CHARS = 2 * MAX_CHARS

_CLAUSE = re.compile(r"[,;:，；：、،؛—–)\]}”»]\s*|\s+")
# Where the segmenter parts what belongs together: after a title, after an abbreviation before a
# number, within one ("т. е."), and after speech whose sentence goes on.
_TITLE_END = re.compile(
    r"(?:^|[\s(\[“\"‘'])(?:Mr|Mrs|Ms|Dr|Prof|Rev|Capt|Col|Gen|Lt|Sgt|Hon|St|Messrs|Mme|Mlle)\.\s*$"
)
_COUNTED_END = re.compile(
    r"(?:^|[\s(\[“\"‘'])(?:vols?|nos?|pp?|figs?|ch|chap|sec|eqs?|ca|c|approx|fol|par|tab)\.\s*$",
    re.IGNORECASE,
)
_INITIAL_END = re.compile(r"(?:^|[\s(])[^\W\d_]\.\s*$")
_SPEECH_END = re.compile(r"[»”\"’」』]\s*$")
_SPEECH_GOES_ON = re.compile(r"[—–-]\s*[a-zа-яё]|と|って")
_CYRILLIC = re.compile("[\u0400-\u04ff]")


def sentences(text: str, *, language: str = "") -> list[Span]:
    """The sentences of a text, ascending, without white space at either end.

    Together they cover every character that is not white space. A line end always ends one: in
    canonical text it stands only between paragraphs, rows, items, and lines of code or verse. The
    row of a table is one.

    Args:
        text: Canonical text, or a part of it.
        language: ISO 639-1 code, for abbreviations; guessed from the script where empty.
    """
    language = language or _language(text)
    found: list[Span] = []
    start = 0
    for line in text.split("\n"):
        place = Span(start, start + len(line))
        if _CELL in line and len(line) <= MAX_CHARS:
            found.extend(_bounded(text, place))
        elif line and not line.isspace():
            found.extend(_in_line(text, place, language))
        start += len(line) + 1
    return found


def _language(text: str) -> str:
    head = text[:2000]
    return "ru" if 4 * len(_CYRILLIC.findall(head)) > len(head) else "en"


def _in_line(text: str, line: Span, language: str) -> Iterator[Span]:
    start = line.start
    while start < line.end:
        window = text[start : min(start + _WINDOW_CHARS, line.end)]
        pieces = _pieces(window, language)
        if start + len(window) < line.end:
            if len(pieces) > 1:
                pieces.pop()  # cut by the window's end, so it begins the next one
            else:
                pieces = [window[: cut_before(window, Span(0, len(window)), len(window))]]
        for piece in pieces:
            yield from _bounded(text, Span(start, start + len(piece)))
            start += len(piece)


def _pieces(window: str, language: str) -> list[str]:
    """Sentences with the white space around them, which joined are the window."""
    from sentencex import segment

    pieces: list[str] = segment(language, window)
    if "".join(pieces) != window:  # never seen; a place must not be wrong if it happens
        return [window]
    return list(_joined(pieces))


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    held = ""
    for piece in pieces:
        if held and not _goes_on(held[-40:], piece.lstrip()):
            yield held
            held = ""
        held += piece
    if held:
        yield held


def _goes_on(before: str, after: str) -> bool:
    """Whether what the segmenter parted is one sentence."""
    return bool(
        _TITLE_END.search(before)
        or (after[:1].isdecimal() and _COUNTED_END.search(before))
        or (after[:1].islower() and _INITIAL_END.search(before))
        or (_SPEECH_GOES_ON.match(after) and _SPEECH_END.search(before))
    )


def _bounded(text: str, span: Span) -> Iterator[Span]:
    """The span without white space around it, cut where it is too long."""
    span = trim(text, span)
    while len(span) > MAX_CHARS:
        cut = cut_before(text, span, span.start + MAX_CHARS)
        yield trim(text, Span(span.start, cut))
        span = trim(text, Span(cut, span.end))
    if len(span):
        yield span


def trim(text: str, span: Span) -> Span:
    """The span without white space at either end; an empty one where there is nothing else."""
    piece = span.of(text)
    start = span.start + len(piece) - len(piece.lstrip())
    return (
        Span(start, start + len(piece.strip())) if piece.strip() else Span(span.start, span.start)
    )


def cut_before(text: str, span: Span, limit: int) -> int:
    """Where to cut a span at or before ``limit``: a clause's end, else a space, else there.

    The cut lies after the first half of what is allowed, so that no tiny piece comes of it.
    """
    earliest = span.start + (limit - span.start) // 2
    best_space, best_clause = 0, 0
    for match in _CLAUSE.finditer(text, earliest, limit):
        if match.group().isspace():
            best_space = match.end()
        else:
            best_clause = match.end()
    return best_clause or best_space or limit
