"""Formulas as one line of text: ``x^2``, ``(a + b)/(c)``, ``[1, 0; 0, 1]``."""

import re
from collections.abc import Callable
from typing import Any

_WORDS = re.compile(r"\s+")
_MOST_LEVELS = 60  # no formula is deeper; hostile pages are
_NO_TEXT = {"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"}
_SPACED = set("=<>≤≥≠≈≡∈∉⊂⊆∪∩+−±×·⋅→←⇒⇔∧∨") | {"-", ":=", "…"}


def math_to_text(math: Any) -> str:
    """What a MathML element says, in a line that can be read and searched.

    Args:
        math: An lxml element in or without the MathML namespace; also Word's, see
            ``memory/word_math.py``.
    """
    text = _WORDS.sub(" ", _said(math)).strip()
    return re.sub(r"([(\[{]) | (?=[)\]},;])", r"\1", text)


def _said(element: Any, depth: int = 0) -> str:
    if not isinstance(element.tag, str):
        return ""
    if depth > _MOST_LEVELS:
        return "".join(element.itertext())
    name = element.tag.rpartition("}")[2].rpartition(":")[2]
    if name in _NO_TEXT:
        return ""
    if name in ("mi", "mn", "mtext", "ms"):
        return "".join(element.itertext())
    if name == "mo":
        sign = "".join(element.itertext()).strip("\u2061\u2062\u2063\u2064 \n\t")
        return f" {sign} " if sign in _SPACED else ", " if sign == "," else sign
    if name == "mspace":
        return " "
    parts = [_said(child, depth + 1) for child in element if isinstance(child.tag, str)]
    write = _WRITERS.get(name)
    if write is None or (name in _ARGUMENTS and len(parts) < _ARGUMENTS[name]):
        return "".join(parts)
    return write(element, [part.strip() for part in parts])


def _group(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def _under(text: str) -> str:
    return f"_{_group(text)}" if text else ""


def _fenced(element: Any, parts: list[str]) -> str:
    separators = element.get("separators", ",").split() or [""]
    text = parts[0] if parts else ""
    for number, part in enumerate(parts[1:]):
        sign = separators[min(number, len(separators) - 1)]
        text += (f"{sign} " if sign else "") + part
    return f"{element.get('open', '(')}{text}{element.get('close', ')')}"


def _row(row: Any, cells: list[str]) -> str:
    sign = ", " if _is_fenced(row.getparent()) else " "
    return sign.join(cell for cell in cells if cell or sign == ", ")


def _is_fenced(table: Any) -> bool:
    """Whether a table is a matrix; else its columns only align the parts of equations."""
    parent, before = table.getparent(), table.getprevious()
    if parent is not None and str(parent.tag).endswith("mfenced"):
        return True
    return before is not None and "".join(before.itertext()).strip() in tuple("([{|‖⟨")


# How many arguments an element needs to mean what it does.
_ARGUMENTS = {
    **{"msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3},
    **{"mfrac": 2, "mroot": 2, "msqrt": 1},
}
_WRITERS: dict[str, Callable[[Any, list[str]], str]] = {
    "msub": lambda _, p: f"{p[0]}_{_group(p[1])}",
    "msup": lambda _, p: f"{p[0]}{p[1] if p[1] in tuple('′″‴*†') else '^' + _group(p[1])}",
    "msubsup": lambda _, p: f"{p[0]}_{_group(p[1])}^{_group(p[2])}",
    "munder": lambda _, p: f"{p[0]}_{_group(p[1])}",
    "mover": lambda _, p: p[0] + ("" if p[1] in tuple("¯‾_→^~˙̂̄") else f"^{_group(p[1])}"),
    "munderover": lambda _, p: f"{p[0]}{_under(p[1])}^{_group(p[2])} ",
    "mfrac": lambda _, p: f"{_group(p[0])}/{_group(p[1])}",
    "mroot": lambda _, p: f"root({p[0]}, {p[1]})",
    "msqrt": lambda _, p: f"√({''.join(p)})",
    "mfenced": _fenced,
    "mtable": lambda _, p: "; ".join(part for part in p if part),
    "mtr": _row,
    "mlabeledtr": _row,
    "semantics": lambda _, p: p[0] if p else "",
}
