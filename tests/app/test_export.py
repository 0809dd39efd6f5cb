"""Chats as files: what was said stays text, and every answer brings its citations."""

import io
import json
from datetime import UTC, datetime

import pytest
from markdown_it import MarkdownIt

from agents.answer import Answer, Citation, Claim
from app.export import export, file_name, sentences_of
from app.present import answer_json
from memory.chats import Turn
from memory.document import Span
from serving.model import Usage

HOSTILE = [
    "**bold** _it_ `code` ~~gone~~",
    "[a link](javascript:alert(1)) ![x](http://evil.example/p.png)",
    "<script>alert(1)</script>",
    "see https://evil.example/a or www.evil.example",
    "# heading\n- list\n1. list\n> quote",
    "&lt;b&gt; &copy;",
]


def turn(text: str, quote: str = "It sank.", state="done", **other) -> Turn:
    citation = Citation("a" * 64, "The Lamp", Span(0, 8), quote, 3, "iii", ("Part 1",), 0.1, 0.9)
    answer = Answer(
        text,
        (citation,),
        True,
        usage=Usage(700, 600, 20, 1),
        reader="oprag",
        model="m",
        seconds=2.5,
        claims=(Claim(Span(0, len(text)), (0,)),),
    )
    return Turn(
        **{
            "id": "1",
            "chat_id": "2",
            "question": "Which ship sank?",
            "documents": None,
            "reader": "oprag",
            "budget_tokens": 0,
            "again_of": "",
            "asked_at": datetime(2026, 1, 1, tzinfo=UTC),
            "state": state,
            "steps": ({"step": "Searched", "says": "searched"},),
            "draft": "",
            "answer": answer_json("Which ship sank?", answer) if state == "done" else None,
            "error": "",
            "feedback": "",
            "owner": "",
            "beat": 0.0,
        }
        | other
    )


def test_the_pieces_are_the_answer():
    text = "The Petrel sank. Perhaps in May. "
    answer = Answer(
        text, (), True, claims=(Claim(Span(0, 17), (1, 0)), Claim(Span(17, len(text)), ()))
    )
    pieces = sentences_of(answer)
    assert "".join(piece for piece, _, _ in pieces) == text
    assert pieces[0] == ("The Petrel sank.", (1, 2), False)
    assert pieces[2] == ("Perhaps in May.", (), True)


@pytest.mark.parametrize("text", HOSTILE)
def test_in_markdown_foreign_text_stays_text(text):
    made = export([turn(text, text)], "markdown", title=text).decode()
    html = MarkdownIt("gfm-like", {"linkify": False}).render(made)
    for tag in ("<a ", "<img", "<script", "<strong", "<code", "<del", "<blockquote", "<ul"):
        assert tag not in html, html
    assert "The Lamp" in html
    assert "page 3 (printed iii)" in html


@pytest.mark.parametrize("text", [*HOSTILE, "کشتی غرق شد\x0c\x01", "船は沈んだ"])
def test_word_holds_answer_quote_and_place(text):
    from docx import Document

    document = Document(io.BytesIO(export([turn(text)], "docx", title="Chat")))
    said = "\n".join(paragraph.text for paragraph in document.paragraphs)
    assert text.rstrip("\x0c\x01") in said
    assert "[1] The Lamp, Part 1, page 3 (printed iii), 10% in" in said
    assert "It sank." in said
    assert "from the cache" in said


def test_json_is_the_turn():
    made = json.loads(export([turn("It sank.")], "json", title="Chat"))
    assert made["turns"][0]["answer"]["citations"][0]["quote"] == "It sank."
    assert made["turns"][0]["steps"] == ["searched"]


@pytest.mark.parametrize("form", ["markdown", "docx", "json"])
def test_turns_without_an_answer_say_why(form):
    turns = [
        turn("", state=state, error="the server went away", draft="It s")
        for state in ("stopped", "failed", "interrupted", "withdrawn", "running")
    ]
    assert export(turns, form, title="Chat")


def test_file_names_hold_letters_and_digits_only():
    assert file_name("../Which ship: sank?", "docx") == "Which-ship-sank.docx"
    assert file_name("船は?", "markdown") == "船は.md"
    assert file_name("???", "json") == "chat.json"
