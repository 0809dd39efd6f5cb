"""What is shown and printed: objects of docs/json.md, and text that a terminal can bear."""

import json
import re
from pathlib import Path

import pytest

from app.present import answer_json, entry_json, problem_json
from app.terminal import plain
from memory.document import Problem

DOCUMENTED = set(
    re.findall(
        r"`(\w+)`",
        (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8"),
    )
)


def keys(value) -> set[str]:
    """All keys of an object and of those in it."""
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def test_every_key_is_documented(opened, lamp):
    library = opened("The schooner Petrel struck the reef.")
    entry = entry_json(library.add(lamp))
    answer = answer_json("Which?", library.ask("Which ship struck the reef?"))
    assert answer["citations"]
    assert keys(entry) | keys(answer) <= DOCUMENTED
    assert json.loads(json.dumps([entry, answer])) == [entry, answer]


def test_pages_of_problems_count_from_1():
    assert problem_json(Problem("blank", "none", 0)) == {
        "page": 1,
        "what": "blank",
        "remedy": "none",
    }
    assert problem_json(Problem("blank", "none"))["page"] is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("bell\x07 \x9b2J back\x08", "bell 2J back"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
        ("caf\udce9", "caf�"),
        ("\u202egnirts", "gnirts"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("第一章\u3000はじめに", "第一章\u3000はじめに"),
        ("non\u00a0breaking", "non breaking"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_foreign_text_is_shown_as_it_reads_and_never_obeyed(text, shown):
    assert plain(text).plain == shown
