"""What single elements of HTML say by themselves: list numbers, pictures, ruby, line numbers."""

import re
from functools import cache
from typing import Any

from memory.markup_names import LINE_NUMBERS

_FILE_NAME = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?|avif)", re.IGNORECASE)
_GENERIC_ALT = re.compile(
    r"(?:(?:the )?(?:page|cover|title ?page|image|img|picture|photo|figure|illustration|logo|icon"
    r"|graphic|untitled|alt|spacer|blank)[ _-]*(?:image|page)?[ .:#_-]*\d*)",
    re.IGNORECASE,
)
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


@cache
def local_name(tag: Any) -> str:
    """The element's name without namespace; empty for comments and instructions."""
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def whole_number(text: str | None) -> int | None:
    """An attribute's number, None where it has none."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,6}", text) else None


def list_marker(item: Any, numbers: dict[Any, int]) -> str:
    """What stands before a list item.

    Args:
        item: The ``<li>``.
        numbers: How far each ordered list has counted; goes on by one.
    """
    parent = item.getparent()
    if "list-style-type:none" in (item.get("style") or "").replace(" ", ""):
        return ""
    if parent is None or local_name(parent.tag) != "ol":
        return "- "
    number = whole_number(item.get("value"))
    if number is None and parent in numbers:
        number = numbers[parent] + 1
    if number is None:
        number = whole_number(parent.get("start"))
    number = 1 if number is None else number
    numbers[parent] = number
    return f"{in_letters(number, parent.get('type') or '1')}. "


def in_letters(number: int, style: str) -> str:
    """A number as HTML's ``type`` says: "1", "a", "A", "i" or "I"."""
    if style in ("a", "A") and 1 <= number <= 26:
        return chr(ord(style) + number - 1)
    if style in ("i", "I") and 1 <= number < 4000:
        roman = ""
        for value, letters in _ROMAN:
            roman += letters * (number // value)
            number %= value
        return roman if style == "I" else roman.lower()
    return str(number)


_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


def alternative_text(image: Any) -> str:
    """What an image shows, in words; empty where it is only called an image."""
    alt = " ".join((image.get("alt") or "").split())
    if _FILE_NAME.fullmatch(alt) or _GENERIC_ALT.fullmatch(alt):
        return ""
    return alt if any(char.isalnum() for char in alt) else ""


def is_line_number(element: Any) -> bool:
    """Whether it numbers a line of verse or of a listing."""
    classes = element.get("class")
    if not classes or not LINE_NUMBERS & set(classes.split()) or len(element):
        return False
    return (element.text or "").strip().isdecimal()


def ruby_text(ruby: Any) -> str:
    """The base text, then its reading in brackets."""
    base, reading = [ruby.text or ""], []
    for child in ruby:
        name = local_name(child.tag)
        if name in ("rt", "rtc"):
            reading.append("".join(child.itertext()))
        elif name and name != "rp":
            base.append("".join(child.itertext()))
        base.append(child.tail or "")
    said = "".join(reading).strip()
    return "".join(base).strip() + (f"({said})" if said else "")
