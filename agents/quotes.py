"""Whether a quote stands in the source: exactly, or but for spaces, quotation marks and hyphens."""

import unicodedata

from memory.document import Span

_SAME = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "…": ".",
    }
)
_DROPPED = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


def locate(quote: str, text: str, *, within: Span | None = None) -> Span | None:
    """Where a quote stands.

    Args:
        quote: The words that somebody claims to stand there.
        text: The source.
        within: Look here only.

    Returns:
        The place in ``text`` whose characters are the quote, or the quote but for the kind of
        spaces, line breaks, quotation marks, hyphens, letter case and a full stop or ellipsis at
        either end; None where it does not stand there.
    """
    place = within or Span(0, len(text))
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote, place.start, place.end)
    if start >= 0:
        return Span(start, start + len(quote))
    wanted, _ = _folded(quote)
    wanted = wanted.strip('".- ')
    if not any(character.isalnum() for character in wanted):
        return None
    source, origin = _folded(place.of(text))
    at = source.find(wanted)
    if at < 0:
        return None
    return Span(
        place.start + origin[at],
        place.start + origin[at + len(wanted) - 1] + 1,
    )


def _folded(text: str) -> tuple[str, list[int]]:
    """The text with its differences that do not count taken out, and where each character was."""
    out: list[str] = []
    origin: list[int] = []
    space = True
    for index, character in enumerate(text.translate(_SAME)):
        if character in _DROPPED:
            continue
        if character.isspace():
            if not space:
                out.append(" ")
                origin.append(index)
            space = True
            continue
        space = False
        for piece in unicodedata.normalize("NFKC", character).casefold():
            out.append(piece)
            origin.append(index)
    return "".join(out), origin
