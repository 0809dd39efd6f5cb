"""Words of a text in any script."""

import re

# Scripts that do not part words by spaces: Thai, Lao, Burmese, Khmer, kana, Han (Korean does).
_UNPARTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
_UNPARTED_LETTER = re.compile(f"[{_UNPARTED}]")
_RUN = re.compile(f"[^\\s{_UNPARTED}]{{1,20}}")


def count_words(text: str) -> int:
    """About how many words a text has.

    What spaces part; where a script does not part words, two characters count as one. A run of
    more than 20 characters counts as several, so that no text is long and yet has few words.
    """
    return len(_RUN.findall(text)) + (len(_UNPARTED_LETTER.findall(text)) + 1) // 2
