"""A chat as a Word document."""

import io
import unicodedata
from collections.abc import Sequence
from typing import Any

from agents.answer import Answer
from app.conversations import answer_in
from app.export import STATES, sentences_of, source_line, spent_line
from memory.characters import clean
from memory.chats import Turn


def as_docx(turns: Sequence[Turn], title: str) -> bytes:
    """The bytes of a .docx file."""
    from docx import Document

    document = Document()
    document.core_properties.title = _clean(title)[:255]
    document.core_properties.author = ""
    _paragraph(document, title, style="Title")
    for turn in turns:
        _paragraph(document, turn.question, style="Heading 1")
        answer = answer_in(turn)
        if answer is None:
            _paragraph(document, STATES[turn.state]).runs[0].italic = True
            for text in filter(None, (turn.error, turn.draft)):
                _paragraph(document, text)
        else:
            _answer(document, answer)
    held = io.BytesIO()
    document.save(held)
    return held.getvalue()


def _answer(document: Any, answer: Answer) -> None:
    paragraph = document.add_paragraph()
    for text, numbers, is_unsupported in sentences_of(answer):
        run = paragraph.add_run(_clean(text))
        run.italic = is_unsupported
        if numbers:
            paragraph.add_run("".join(f"[{number}]" for number in numbers)).font.superscript = True
        if is_unsupported:
            paragraph.add_run(" (nothing in the sources bears this out)").italic = True
    _turn_right(paragraph, answer.text)
    if answer.nearest:
        _paragraph(document, "The nearest passages:")
    for number, citation in enumerate(answer.citations or answer.nearest, 1):
        _paragraph(document, f"[{number}] {source_line(citation)}").runs[0].bold = True
        _paragraph(document, " ".join(citation.quote.split()), style="Intense Quote")
    _paragraph(document, spent_line(answer)).runs[0].italic = True


def _paragraph(document: Any, text: str, style: str | None = None) -> Any:
    paragraph = document.add_paragraph(_clean(text), style=style)
    _turn_right(paragraph, text)
    return paragraph


def _turn_right(paragraph: Any, text: str) -> None:
    """Lets a paragraph run from the right where its first letter does."""
    from docx.oxml import OxmlElement

    kinds = (unicodedata.bidirectional(character) for character in text)
    if next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L":
        paragraph.paragraph_format.element.get_or_add_pPr().append(OxmlElement("w:bidi"))
        for run in paragraph.runs:
            run.font.rtl = True


def _clean(text: str) -> str:
    """Text that XML can hold."""
    return clean(text).replace("\f", "\n")
