"""Text as a person reads it: without the characters that show nothing and break searching."""

import re

# ANSI colours and cursor moves ("\x1b[31m"), and terminal titles ("\x1b]0;…\x07").
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[@-Z\\^_])"
)

# Joiners belong to the spelling of Persian, the Indic scripts and emoji, not beside Latin,
# Greek, Cyrillic letters, digits or spaces.
_STRAY_JOINER = re.compile(
    "(?<![\u0530-\U0010ffff])[\u200c\u200d]+|[\u200c\u200d]+(?![\u0530-\U0010ffff])"
)

# The zero-width space parts words in the scripts of South East Asia, and nothing elsewhere.
_STRAY_ZERO_WIDTH_SPACE = re.compile("(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b+")

# Characters that stand for others, or are shown as nothing, so that a word that holds one is not
# found by whoever types it: control characters (line ends, tab and form feed aside), soft hyphen,
# Arabic letter mark, word joiner and invisible operators, byte order mark, interlinear marks,
# language tags (a way to smuggle in instructions nobody sees), noncharacters. The bidirectional
# marks, embeddings, overrides and isolates can show a text in another order than it has; without
# them the logical order stands.
_UNCLEAN = re.compile(
    "[\x00-\x08\x0b\x0d-\x1f\x7f-\xa0\u00ad\u061c\u180e\u2007\u200b-\u200f\u2028-\u202f"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
_INSTEAD = {
    **dict.fromkeys("\r\x85\u2028\u2029", "\n"),
    **dict.fromkeys("\u00a0\u2007\u202f", " "),
    **{kept: kept for kept in "\u200b\u200c\u200d"},  # it depends on what is beside them
}


def clean(text: str) -> str:
    r"""The text without escape sequences, control and invisible characters.

    Line ends become ``\n``, no-break spaces become spaces, lone surrogates become U+FFFD (they
    cannot be stored); tabs and form feeds stay. What is taken out shows nothing to a reader: words
    stay findable, and an order of display that differs from the order of reading is undone.
    """
    if not _UNCLEAN.search(text):
        return text
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = _UNCLEAN.sub(_instead, text.replace("\r\n", "\n"))
    if "\u200c" in text or "\u200d" in text:
        text = _STRAY_JOINER.sub("", text)
    return _STRAY_ZERO_WIDTH_SPACE.sub("", text) if "\u200b" in text else text


def _instead(unclean: re.Match[str]) -> str:
    char = unclean.group()
    return "\ufffd" if "\ud800" <= char <= "\udfff" else _INSTEAD.get(char, "")
