import json

import pytest
from desks import desk_of, document_of

from agents.tools import TOOLS
from serving.errors import BadReply
from serving.scripted import ScriptedLLM

LAMP = """Chapter 1

Mira lit the lamp in the tower. Whale oil cost three shillings.

Chapter 2

The schooner Petrel struck the reef. The  Petrel
sank, and Orlov with the Petrel.
"""
WELL = "The village of Ansty dug a well in 1790. The Petrel was its inn."


@pytest.fixture
def call():
    desk = desk_of(ScriptedLLM([]), document_of("The Lamp", LAMP), document_of("The Well", WELL))
    tools = {tool.name: tool for tool in TOOLS}

    def called(name, **arguments):
        seen = tools[name].run(desk, arguments)
        for passage in seen.passages:
            text = desk.document(passage.document_id).text
            assert passage.span.of(text).strip() in seen.text
        return seen

    return called


def test_the_outline_lists_documents_and_then_sections_with_their_places(call):
    assert call("outline").text == "document 1: The Lamp, 30 words\ndocument 2: The Well, 14 words"
    assert call("outline", document=1).text.splitlines()[1:] == [
        "Chapter 1 (start 0)",
        f"Chapter 2 (start {LAMP.index('Chapter 2')})",
    ]
    assert "The village of Ansty" in call("outline", document=2).text


def test_grep_counts_all_places_whatever_the_spaces_and_the_case(call):
    seen = call("grep", words="the petrel")
    assert "stands there 3 times" in seen.text
    assert len({(p.document_id, p.span) for p in seen.passages}) == len(seen.passages)
    assert "once" in call("grep", words="the petrel", document=2).text
    assert call("grep", words="submarine").passages == ()


def test_grep_takes_words_not_patterns(call):
    assert "does not stand there" in call("grep", words="(a+)+$ .*").text


def test_search_looks_in_all_documents_or_in_one(call):
    assert "Ansty" in call("search", query="who dug the well").text
    seen = call("search", query="Petrel", document=2)
    assert {p.span.of(WELL) for p in seen.passages} == {WELL}
    assert "nothing was found" in call("search", query="zeppelin").text


def test_reading_begins_at_a_sentence_and_says_where_it_goes_on(call):
    start = LAMP.index("cost three")
    assert "[document 1, Chapter 1, start" in call("read", document=1, start=start).text
    assert "Whale oil cost three" in call("read", document=1, start=start).text


def test_a_long_document_is_read_page_by_page():
    text = " ".join(f"This is sentence number {n} of the long tale." for n in range(300))
    desk = desk_of(ScriptedLLM([]), document_of("Long", text))
    read = next(tool for tool in TOOLS if tool.name == "read")
    start, seen_to = 0, 0
    for _ in range(20):
        seen = read.run(desk, {"document": 1, "start": start})
        span = seen.passages[0].span
        assert span.start == seen_to
        seen_to = span.end
        if "it goes on at start" not in seen.text:
            break
        start = int(seen.text.rsplit(" ", 1)[1].rstrip(")"))
    assert seen_to == len(text)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read", {"document": 3}, "document must be 1 to 2; got 3"),
        ("read", {"document": 0}, "document must be"),
        ("read", {"document": "1"}, "whole number"),
        ("read", {"document": True}, "whole number"),
        ("read", {"document": 1, "start": 10_000}, "start must be 0 to"),
        ("read", {"document": 1, "page": 2}, "no pages; use start"),
        ("search", {"query": ""}, "some words"),
        ("search", {}, "some words"),
        ("grep", {"words": "?!"}, "some words"),
        ("outline", {"document": -1}, "document must be"),
        ("gists", {"document": 1, "part": 99}, "part must be 1 to"),
        ("gists", {"document": 7}, "document must be 1 to 2"),
    ],
)
def test_a_wrong_argument_says_what_would_be_right(call, name, arguments, says):
    with pytest.raises(BadReply, match=says):
        call(name, **arguments)


def test_the_parameters_are_json_schemas():
    for tool in TOOLS:
        assert json.loads(json.dumps(tool.parameters))["type"] == "object"
        assert set(tool.parameters.get("required", ())) <= set(tool.parameters["properties"])


def test_gists_show_a_document_in_short_without_a_call(call):
    shown = call("gists", document=1)
    assert shown.text.splitlines()[0] == "document 1 in short: The Lamp"
    assert "part 1 (start 0): Chapter 1 Mira lit the lamp" in shown.text
    assert "Ansty" not in shown.text
    assert shown.passages == ()  # nothing to cite


def test_many_gists_are_shown_a_part_at_a_time():
    text = "\n\n".join(f"In {1700 + n} the miller sold {n} sacks of rye. " * 4 for n in range(80))
    desk = desk_of(ScriptedLLM([]), document_of("Rye", text))
    tool = next(tool for tool in TOOLS if tool.name == "gists")
    seen, part = [], 1
    for _ in range(60):
        *lines, last = tool.run(desk, {"document": 1, "part": part}).text.splitlines()
        assert sum(map(len, lines)) < 3_000
        seen += [int(line.split()[1]) for line in (*lines, last) if line.startswith("part ")]
        if not last.startswith("…"):
            break
        part = int(last.split()[-1])
    assert seen == list(range(1, len(desk.gists(desk.documents[0]).gists) + 1))
