"""Texts to the words that word search compares, the same for passages and queries."""

import re
import unicodedata
from collections.abc import Iterator

# Scripts written without spaces between words: their runs become overlapping pairs of characters.
_UNSPACED = (
    "\u0e00-\u0e7f"  # Thai
    "\u0e80-\u0eff"  # Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Korean has spaces, yet glues its particles to words
)
# Marks that ``\w`` leaves out although they are parts of a word (vowel signs, mostly).
_MARKS = "\u0300-\u036f\u0900-\u0dff\u0f00-\u0fbc"
_RUN = re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])\\w|[{_MARKS}])+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_ASCII_WORD = re.compile("[a-z0-9]+")
_STARTS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_PUNCTUATION = re.compile("[\u0964\u0965\u0970\u0df4\u0e2f\u0e5a\u0e5b\u104a-\u104f\u17d4-\u17da]+")
# Accents over letters, Hebrew points, Arabic vowel signs and the stretching stroke; not the vowel
# signs of Indic scripts, which are letters of their own.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+")
_LONGEST = 64


def index_words(text: str) -> list[str]:
    """Words of a passage in order: case folded, without accents, unspaced scripts in pairs.

    Every Han character also stands alone, so that a query of one character finds it.
    """
    return list(_words(text, single=True))


def query_words(text: str) -> list[str]:
    """Words of a query in order; unspaced scripts in pairs only, but for a lone character."""
    return list(_words(text, single=False))


def _words(text: str, *, single: bool) -> Iterator[str]:
    if text.isascii():
        for word in _ASCII_WORD.findall(text.lower()):
            yield word[:_LONGEST]
        return
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    plain = _PUNCTUATION.sub(" ", unicodedata.normalize("NFC", plain))
    for run in _RUN.findall(plain):
        if not _STARTS_UNSPACED.match(run):
            yield run[:_LONGEST]
            continue
        if len(run) == 1:
            yield run
        elif single:
            yield from _HAN.findall(run)
        for place in range(len(run) - 1):
            yield run[place : place + 2]
