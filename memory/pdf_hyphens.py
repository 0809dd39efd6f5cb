"""Words that a line's end broke: joined again, with the hyphen where it is the word's own."""

import re
from dataclasses import dataclass, field

from memory.pdf_words import joint

_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W_]+)*")
_LAST = re.compile(r"([^\W_]+(?:[-\u2010][^\W_]+)*)[-\u2010\u00ad]$")
_FIRST = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_ADDRESS = re.compile(r"\S/\S*/$|\bhttps?:/{0,2}$")  # a path or web address cut behind a slash


@dataclass(slots=True)
class Spellings:
    """Words seen in the document, those with hyphens too; to tell one hyphen from the other.

    Attributes:
        most: So many are kept; a longer document's later words are not learnt.
    """

    most: int = 200_000
    _seen: set[str] = field(default_factory=set)

    def learn(self, text: str) -> None:
        """Remembers the words of a line, the first and last aside (they may be broken)."""
        if len(self._seen) < self.most:
            self._seen.update(map(str.casefold, _WORD.findall(text)[1:-1]))

    def joined(self, before: str, after: str) -> str:
        """Two lines of a paragraph as one."""
        before, glue = self.seam(before, after)
        return before + glue + after

    def seam(self, before: str, after: str) -> tuple[str, str]:
        """The first line without a hyphen that is none, and what stands between the two."""
        last, first = _LAST.search(before), _FIRST.match(after)
        if _ADDRESS.search(before) and not after[:1].isspace():
            return before, ""
        if not last or not first:
            if before.endswith("\u00ad"):
                return before[:-1], ""
            return before, joint(before, after)
        if not after[0].islower() or not before[-2].isalpha():
            return before[:-1] + "-", ""
        if before.endswith("\u00ad") or not self._keeps(last[1].casefold(), first[0].casefold()):
            return before[:-1], ""
        return before[:-1] + "-", ""

    def _keeps(self, start: str, end: str) -> bool:
        """Whether the hyphen between two parts of a word is its own."""
        if start + end in self._seen:
            return False
        if f"{start}-{end}" in self._seen or f"{start}\u2010{end}" in self._seen:
            return True
        if "-" in start:  # "state-of-the-" goes on as it began
            return True
        return min(len(start), len(end)) > 2 and start in self._seen and end in self._seen
