"""Numbers in figures, so that “eleven” and “11” are the same, and “1,200” and “1200”.

Books write numbers out and models do not, so an answer may be right in other letters. Only English
number words are known.
"""

import re

_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_FIRST_TWO = "first|second"  # alone they are said of much that is not counted
_OTHER_NTHS = "third|fourth|fifth|sixth|seventh|eighth|ninth"
_TEENTHS = (
    "tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth"
    "|nineteenth"
)
_TENTHS = _TENS.replace("y", "ieth")


def _valued(words: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: first + i * step for i, word in enumerate(words.split("|"))}


_VALUES = (
    _valued(_ONES, 1)
    | _valued(_TEENS, 10)
    | _valued(_TENS, 20, 10)
    | _valued(f"{_FIRST_TWO}|{_OTHER_NTHS}", 1)
    | _valued(_TEENTHS, 10)
    | _valued(_TENTHS, 20, 10)
)
_TO_99 = (
    rf"(?:(?:{_TENS})[-\s](?:{_ONES}|{_FIRST_TWO}|{_OTHER_NTHS})"
    rf"|{_TEENTHS}|{_TEENS}|{_TENTHS}|{_TENS}|{_OTHER_NTHS}|{_ONES})\b"
)
_TO_999 = rf"(?:(?:a|{_TEENS}|{_ONES})\s+hundred\b(?:\s+(?:and\s+)?{_TO_99})?|{_TO_99})"
_NUMBER = re.compile(
    rf"\b(?:(?:a|{_TO_999})\s+thousand\b(?:,?\s+(?:and\s+)?{_TO_999})?|{_TO_999})", re.IGNORECASE
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_NTH = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)


def in_figures(text: str) -> str:
    """The text with its number words in figures, too, "first" and "second" left out."""
    return plain_figures(_NUMBER.sub(_figures, text))


def plain_figures(text: str) -> str:
    """The text with 1,200 as 1200 and 9th as 9."""
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    return _NTH.sub(r"\1", text)


def _figures(number: re.Match[str]) -> str:
    thousands, rest = 0, 0
    for word in re.split(r"[-,\s]+", number.group().casefold()):
        if word == "thousand":
            thousands, rest = max(rest, 1) * 1_000, 0
        elif word == "hundred":
            rest = max(rest, 1) * 100
        else:
            rest += _VALUES.get(word, 0)  # "a" and "and" are worth nothing
    return str(thousands + rest)
