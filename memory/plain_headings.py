"""Headings of plain text, by rules that hardly ever take a sentence for one."""

import re
from dataclasses import dataclass

_NUMBER = r"(?:\d{1,3}|[IVXLC]{1,8}|[ivxlc]{1,8}|[A-Z]|(?:the\s+)?[a-z]+(?:[- ][a-z]+)?)"
_PART = re.compile(
    rf"(?:(?:part|book|volume|act|часть|книга|том|teil|buch|partie|livre|tome|parte|libro)\s+"
    rf"{_NUMBER}(?:[.:—–-].*|\s*)|第\s*[\d一二三四五六七八九十百千〇零两上中下０-９]+\s*[部卷編编篇].{{0,30}})",
    re.IGNORECASE,
)
_CHAPTER = re.compile(
    rf"(?:(?:chapter|section|scene|stave|canto|letter|appendix|глава|раздел|приложение|kapitel"
    rf"|abschnitt|chapitre|cap[ií]tulo|capitolo)\s+{_NUMBER}(?:[.:—–-].*|\s*)"
    rf"|第\s*[\d一二三四五六七八九十百千〇零两０-９]+\s*[章回節节話话講讲].{{0,40}})",
    re.IGNORECASE,
)
_BY_NAME = re.compile(
    r"(?:preface|foreword|introduction|prologue|epilogue|conclusion|contents|table of contents"
    r"|abstract|acknowledge?ments?|glossary|index|bibliography|references|etymology|dedication"
    r"|afterword|appendix|appendices|序章|序文|序|前言|目次|目录|目錄|附录|付録|あとがき|後記|后记"
    r"|предисловие|введение|заключение|оглавление|содержание)[.:]?",
    re.IGNORECASE,
)
_NESTED_NUMBER = re.compile(r"([A-Z\d]\d{0,2}(?:\.\d{1,3}){1,5})\.?\s+(\S.{0,150})")
_PLAIN_NUMBER = re.compile(r"(?:\d{1,3}|[A-Z])\.\s{1,3}([^\W\d_].{0,75})")
_UNDERLINE = re.compile(r"\s*(={3,}|-{3,}|~{3,}|\^{3,}|\*{3,})\s*")
_WIDEST_COLUMN = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at the start of a run of lines.

    Attributes:
        title: Its text.
        rank: 0 for a part, 1 for a chapter, more below.
        num_lines: How many lines it takes.
    """

    title: str
    rank: int
    num_lines: int


def is_numbered(run: list[str]) -> bool:
    """Whether a run is a heading like "1.2. Title": then "1. Title" may be one in that file too."""
    found = heading(run)
    return found is not None and found.rank > 1


def heading(run: list[str], *, plain_numbers: bool = False) -> Heading | None:
    """The heading that a run of lines begins with, None where it begins with text.

    Args:
        run: Lines without a blank one between them.
        plain_numbers: "3. Title" is a heading, not an item of a list.
    """
    first = run[0].strip()
    if len(first) > _WIDEST_COLUMN:
        return None
    if len(run) > 1 and (line := _UNDERLINE.fullmatch(run[1])):
        is_text = any(char.isalpha() for char in first) and not _UNDERLINE.fullmatch(first)
        if is_text and 0.5 * len(first) <= len(line.group(1)) <= 2 * len(first) + 4:
            return Heading(first, 1 if line.group(1)[0] in "=*" else 2, 2)
    if len(run) > 2:
        return None
    title = " ".join(line.strip() for line in run)
    if _PART.fullmatch(title):
        return Heading(title, 0, len(run))
    if _CHAPTER.fullmatch(title) and not _is_sentence(title, run):
        return Heading(title, 1, len(run))
    if len(run) == 1 and _BY_NAME.fullmatch(first):
        return Heading(first, 1, 1)
    if run[0][:1].isspace():
        return None  # an indented number is an entry of a list
    if (found := _NESTED_NUMBER.fullmatch(title)) and not title.endswith((",", ";")):
        return Heading(title, 1 + found.group(1).count("."), len(run))
    if plain_numbers and len(run) == 1 and _PLAIN_NUMBER.fullmatch(first):
        return None if first.endswith((",", ";", ":", ".")) else Heading(first, 1, 1)
    return None


def _is_sentence(title: str, run: list[str]) -> bool:
    """Whether two lines that begin like a chapter are rather the end of a paragraph."""
    return len(run) == 2 and len(title) > 1.2 * _WIDEST_COLUMN
