"""Word's paragraph styles and list numbers: which paragraphs are headings, what is before them."""

from dataclasses import dataclass, field
from typing import Any

from memory.markup_inline import in_letters

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MOST_BASES = 20  # a chain of styles, each based on another; damaged files have circles
_BODY_LEVEL = 9  # Word's outline level of what is no heading


def value(element: Any, path: str) -> str:
    """``w:val`` of a descendant ("pPr/pStyle"), empty where there is none."""
    found = (
        None if element is None else element.find("/".join(W + part for part in path.split("/")))
    )
    return "" if found is None else found.get(f"{W}val", "")


@dataclass(frozen=True, slots=True)
class Styles:
    """The styles of a document, by id."""

    by_id: dict[str, Any]

    @classmethod
    def of(cls, root: Any) -> "Styles":
        """From the root of ``word/styles.xml``; None has no styles."""
        found = [] if root is None else root.iterchildren(f"{W}style")
        return cls({style.get(f"{W}styleId", ""): style for style in found})

    def heading_level(self, paragraph: Any) -> int:
        """1 for the highest, 0 for what is no heading."""
        for place, holder in enumerate(self._chain(paragraph)):
            name = value(holder, "name").lower()
            if name == "title" and place == 1:  # subtitle and author are based on it
                return 1
            if name.startswith("heading ") and name[8:].isdecimal():
                return int(name[8:])
            level = value(holder, "pPr/outlineLvl")
            if level.isdecimal():
                return 0 if int(level) >= _BODY_LEVEL else int(level) + 1
        return 0

    def numbering(self, paragraph: Any) -> tuple[str, int] | None:
        """Id and level of the list that a paragraph belongs to."""
        list_id, level = "", ""
        for holder in self._chain(paragraph):
            list_id = list_id or value(holder, "pPr/numPr/numId")
            level = level or value(holder, "pPr/numPr/ilvl")
        if not list_id or list_id == "0":  # 0 takes a paragraph out of the list of its style
            return None
        return list_id, int(level) if level.isdecimal() else 0

    def _chain(self, paragraph: Any) -> list[Any]:
        """The paragraph, its style, and what that is based on."""
        chain = [paragraph]
        style_id = value(paragraph, "pPr/pStyle")
        while (style := self.by_id.get(style_id)) is not None and len(chain) < _MOST_BASES:
            chain.append(style)
            style_id = value(style, "basedOn")
        return chain


@dataclass(slots=True)
class Numbering:
    """Counts lists as Word does, so that "see 4.2" finds its paragraph."""

    levels: dict[str, dict[int, Any]] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Any) -> "Numbering":
        """From the root of ``word/numbering.xml``; None has no lists."""
        numbering = cls()
        if root is None:
            return numbering
        abstract = {a.get(f"{W}abstractNumId"): a for a in root.iterchildren(f"{W}abstractNum")}
        for num in root.iterchildren(f"{W}num"):
            list_id, base_id = num.get(f"{W}numId", ""), value(num, "abstractNumId")
            base = abstract.get(base_id)
            levels = [] if base is None else base.iterchildren(f"{W}lvl")
            numbering.levels[list_id] = {_level(level): level for level in levels}
            numbering.shared[list_id] = base_id
            for override in num.iterchildren(f"{W}lvlOverride"):
                start = value(override, "startOverride")
                if start.isdecimal():
                    numbering.starts[list_id, _level(override)] = int(start)
                    numbering.shared[list_id] = f"{base_id}/{list_id}"
        return numbering

    def next_label(self, list_id: str, level: int) -> str:
        """What stands before the next paragraph of a list: "4.2", "(b)", "-"; "" for nothing."""
        levels = self.levels.get(list_id, {})
        counts = self.counts.setdefault(self.shared.get(list_id, list_id), {})
        counts[level] = counts.get(level, self._start(list_id, level) - 1) + 1
        for deeper in [other for other in counts if other > level]:
            del counts[deeper]
        kind = value(levels.get(level), "numFmt")
        if kind in ("bullet", ""):
            return "-" if kind else ""
        label = value(levels.get(level), "lvlText")
        for other in range(level + 1):
            count = counts.get(other, self._start(list_id, other))
            label = label.replace(
                f"%{other + 1}", _written(count, value(levels.get(other), "numFmt"))
            )
        return "" if kind == "none" else label.strip()

    def _start(self, list_id: str, level: int) -> int:
        start = value(self.levels.get(list_id, {}).get(level), "start")
        return self.starts.get((list_id, level), int(start) if start.isdecimal() else 1)


def _level(element: Any) -> int:
    level = element.get(f"{W}ilvl", "0")
    return int(level) if level.isdecimal() else 0


def _written(count: int, style: str) -> str:
    styles = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
    text = in_letters(count, styles.get(style, "1"))
    return text.zfill(2) if style == "decimalZero" else text
