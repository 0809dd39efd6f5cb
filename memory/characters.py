"""Text as a person reads it: without the characters that show nothing and break searching."""

import re

# ANSI colours and cursor moves ("\x1b[31m"), and terminal titles ("\x1b]0;…\x07").
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[@-Z\\^_])"
)

# Shown as nothing, so that a word that holds one is not found by whoever types it: control
# characters (line ends, tab and form feed aside), soft hyphen, Arabic letter mark, word joiner and
# invisible operators, byte order mark, interlinear marks, language tags (a way to smuggle in
# instructions nobody sees), noncharacters. The bidirectional marks, embeddings, overrides and
# isolates can show a text in another order than it has; without them the logical order stands.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)

# Joiners belong to the spelling of Persian, the Indic scripts and emoji, not beside Latin,
# Greek, Cyrillic letters, digits or spaces.
_STRAY_JOINER = re.compile(
    "(?<![\u0530-\U0010ffff])[\u200c\u200d]+|[\u200c\u200d]+(?![\u0530-\U0010ffff])"
)

# The zero-width space parts words in the scripts of South East Asia, and nothing elsewhere.
_STRAY_ZERO_WIDTH_SPACE = re.compile("(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b+")

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")
_ODD_SPACES = re.compile("[\u00a0\u202f\u2007]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNCLEAN = re.compile(  # any character that one of the above concerns; most texts have none
    "[\x00-\x08\x0b\x0d-\x1f\x7f-\xa0\u00ad\u061c\u180e\u2007\u200b-\u200f\u2028-\u202f"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    r"""The text without escape sequences, control and invisible characters.

    Line ends become ``\n``, no-break spaces become spaces, lone surrogates become U+FFFD (they
    cannot be stored); tabs and form feeds stay. What is taken out shows nothing to a reader: words
    stay findable, and an order of display that differs from the order of reading is undone.
    """
    if not _UNCLEAN.search(text):
        return text
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    text = _INVISIBLE.sub("", _SURROGATES.sub("\ufffd", text))
    if "\u200c" in text or "\u200d" in text:
        text = _STRAY_JOINER.sub("", text)
    return _ODD_SPACES.sub(" ", _STRAY_ZERO_WIDTH_SPACE.sub("", text))
