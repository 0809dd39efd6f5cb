"""What is wrong with a model's short version of a passage, in words that the model can act on."""

import re
from collections import Counter

from memory.extract import terms
from memory.wordcount import count_words

_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|i am sorry|sorry|as an ai|i (?:can(?:no|['’])t|am unable|do not have)"
    r"|unfortunately)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_LABEL = re.compile(
    r"^\s*(?:\*\*|#+ )?(?:here(?: is|['’]s)[^\n:]{0,60}|(?:short(?:ened)? )?(?:version|summary|gist"
    r"|passage))(?:\*\*)?:(?:\*\*)?\s*",
    re.IGNORECASE,
)
_OWN_SHARE = 0.5  # of a short version's terms that must stand in the passage
_FEW_TERMS = 3
_STEM = 5  # letters by which words of one stem are told, roughly


def tidy(reply: str) -> str:
    """A reply on one line, without a fence or a heading such as "Summary:"."""
    text = reply.strip().removeprefix("<<<").removesuffix(">>>").strip().strip("`").strip()
    return " ".join(_LABEL.sub("", text, count=1).split())


def fault(short: str, passage: str) -> str:
    """Why a short version cannot stand in for its passage; empty where it can.

    Args:
        short: A tidied reply.
        passage: What it is to shorten.
    """
    if not any(character.isalnum() for character in short):
        return "it is empty"
    if _REFUSAL.match(short) and not _REFUSAL.match(passage):
        return "it refuses, and the passage is only text to shorten"
    if _repeats(short):
        return "it says the same again and again"
    if count_words(short) >= count_words(passage):
        return "it is not shorter than the passage"
    known = set(_NUMBER.findall(passage))
    strange = [number for number in _NUMBER.findall(short) if number not in known]
    if strange:
        return f"the number {strange[0]} does not stand in the passage"
    own = {term[:_STEM] for term in terms(short)}
    source = {term[:_STEM] for term in terms(passage)}
    if len(own) >= _FEW_TERMS and len(own & source) < _OWN_SHARE * len(own):
        return "it speaks of other things than the passage"
    return ""


def _repeats(text: str) -> bool:
    """Whether a run of four words comes three times, or hardly any word comes once."""
    words = text.casefold().split()
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    if runs and max(runs.values()) > 2:
        return True
    return len(words) >= 12 and len(set(words)) < len(words) / 4
