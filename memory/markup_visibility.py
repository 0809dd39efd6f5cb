"""Whether a reader of the page sees an element: what is hidden for certain, and nothing more."""

import re
from typing import Any

from memory.markup_names import DROPPED_CLASSES, NAVIGATION_ROLES

_HIDING = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|font-size\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:;|!|$)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$))",
    re.IGNORECASE,
)


def is_shown(element: Any, name: str, types: set[str], keep_navigation: bool) -> bool:
    """Whether an element's text is read.

    Style sheets are not looked at: what they hide on one screen they show on another.

    Args:
        element: An lxml element.
        name: Its local name.
        types: Its ``epub:type`` and ``role``.
        keep_navigation: Read the site's or book's links too.
    """
    if not keep_navigation and (name == "nav" or types & NAVIGATION_ROLES):
        return False
    if name == "dialog" and element.get("open") is None:
        return False
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return False
    if (style := element.get("style")) and _HIDING.search(style):
        return False
    if (classes := element.get("class")) and DROPPED_CLASSES & set(classes.split()):
        return False
    if element.get("aria-hidden") == "true":
        # Behind an open dialogue a whole page is marked so; only icons are surely no text.
        return any(char.isalnum() for char in "".join(element.itertext()))
    return True
