"""The one place where foreign text (documents', models', file names') is made safe to show.

Streamlit reads Markdown in most texts that it is given, labels included: links, images, formulas,
colours and icons. A document must not be able to use any of it.
"""

import html
import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@/\"'])")
_SPACES = re.compile(r"\s+")
# Streamlit looks for addresses, :icons: and arrows after escapes are gone. A word joiner, which
# shows nothing and breaks no line, parts what it would look for.
_JOINER = "\u2060"
_LOOKED_FOR = re.compile(r"(:(?=\S)|@(?=\S)|\bwww(?=\.)|[-<>=~](?=[-<>=~]))", re.IGNORECASE)


def label(text: str, *, max_chars: int = 0) -> str:
    """Foreign text for a label, a message or Markdown: shown letter by letter, on one line.

    Args:
        text: Any text.
        max_chars: Cut, with an ellipsis, to so many characters; 0 for no bound.
    """
    line = _SPACES.sub(" ", text).strip()
    if max_chars and len(line) > max_chars:
        line = line[: max_chars - 1].rstrip() + "…"
    return _SPECIAL.sub(r"\\\1", _LOOKED_FOR.sub(rf"\1{_JOINER}", line))


def block(text: str, *, kind: str = "") -> str:
    """Foreign text as HTML for ``st.html``: paragraphs and spaces as they are.

    Its direction is its own: Arabic, Hebrew and Persian run from the right.

    Args:
        text: Any text.
        kind: Further classes, for example "gt-pre gt-muted".
    """
    return f'<div class="gt {kind}" dir="auto">{html.escape(text)}</div>' if text else ""


def inline(text: str, *, kind: str = "") -> str:
    """Foreign text as a piece of HTML within a line; it cannot turn the words around it."""
    return f'<bdi class="gt {kind}">{html.escape(text)}</bdi>'
