"""Word's formulas (OMML) as one line of text, in the manner of ``memory/mathml.py``."""

import re
from typing import Any

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def word_math_to_text(formula: Any) -> str:
    """What an ``m:oMath`` element says."""
    return re.sub(r"\s+", " ", _said(formula)).strip()


def _said(element: Any) -> str:
    if not isinstance(element.tag, str) or not element.tag.startswith(_M):
        return ""
    name = element.tag.removeprefix(_M)
    if name == "t":
        return re.sub(r"([=+<>≤≥≠≈±×·→])", r" \1 ", element.text or "")
    if name.endswith("Pr"):
        return ""

    def part(of: str) -> str:
        return "".join(_said(child) for child in element.iterchildren(_M + of)).strip()

    match name:
        case "f":
            return f"{_group(part('num'))}/{_group(part('den'))}"
        case "sSup":
            return f"{part('e')}^{_group(part('sup'))}"
        case "sSub":
            return f"{part('e')}_{_group(part('sub'))}"
        case "sSubSup":
            return f"{part('e')}_{_group(part('sub'))}^{_group(part('sup'))}"
        case "rad":
            degree = part("deg")
            return f"root({part('e')}, {degree})" if degree else f"√({part('e')})"
        case "nary":
            under, over = part("sub"), part("sup")
            limits = (f"_{_group(under)}" if under else "") + (f"^{_group(over)}" if over else "")
            return f"{_property(element, 'chr', '∫')}{limits} {part('e')}"
        case "d":
            inside = ", ".join(_said(child).strip() for child in element.iterchildren(_M + "e"))
            return _property(element, "begChr", "(") + inside + _property(element, "endChr", ")")
        case "limLow" | "limUpp":
            return f"{part('e')}_{_group(part('lim'))} "
        case "func":
            return f"{part('fName')} {part('e')}"
        case "m" | "eqArr":
            return "; ".join(_said(row).strip() for row in element if not row.tag.endswith("Pr"))
        case "mr":
            return ", ".join(_said(cell).strip() for cell in element)
    return "".join(map(_said, element))


def _group(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def _property(element: Any, name: str, otherwise: str) -> str:
    found = element.find(f"{_M}{element.tag.removeprefix(_M)}Pr/{_M}{name}")
    return otherwise if found is None else found.get(f"{_M}val", otherwise)
