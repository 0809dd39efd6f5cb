import json

import pytest
from desks import desk_of, document_of

from agents.parts import Part
from agents.readers.notes import NotesReader
from agents.steps import Assembled, Called, Degraded, Noted
from agents.typed_memory import Field, TypedMemory, fields_of
from memory.document import Span
from serving.errors import BadOption, BadReply
from serving.scripted import ScriptedLLM

ONE = "Starbuck was the chief mate of the Pequod, and a careful man of Nantucket all his days."
TWO = (
    "Stubb was the second mate. He smoked his pipe whatever the weather was, and Starbuck frowned."
)
THREE = "The weather was fair for a week, and nothing at all befell the ship or anybody in her."
TALE = f"{ONE}\n\n{TWO}\n\n{THREE}"
QUESTION = "Which mates does the ship have?"
FIELDS = json.dumps({"fields": [{"name": "mates", "holds": "the mates of the ship"}]})


def scripted(replies):
    return ScriptedLLM(replies, ability="large")


def notes(*values, field="mates"):
    return json.dumps({"notes": [{"field": field, "value": value} for value in values]})


def read(model, **options):
    desk = desk_of(model, document_of("Whale", TALE), budget_tokens=40)
    reader = NotesReader(**({"part_tokens": 20} | options))
    return list(reader.read(desk, QUESTION))


def test_fields_are_proposed_notes_kept_and_the_answer_comes_from_them():
    model = scripted(
        [
            FIELDS,
            notes("Starbuck, chief mate"),
            notes("Stubb, second mate"),
            notes(),
            "Starbuck and Stubb.",
        ]
    )
    steps = read(model)
    assert next(s for s in steps if isinstance(s, Called)).result == "mates: the mates of the ship"
    assert [s.relevant for s in steps if isinstance(s, Noted)] == [True, True, False]
    prompt = model.seen[-1][-1].content
    assert "mates 1: Starbuck, chief mate" in prompt
    assert "mates 2: Stubb, second mate" in prompt
    assert THREE not in prompt
    answer = steps[-1]
    assert answer.found
    assert {c.quote for c in answer.citations} <= {
        ONE,
        *TWO.split(". ", 1),
        "Stubb was the second mate.",
    }
    assert answer.usage.calls == 5


def test_the_prompt_of_a_part_begins_as_the_one_before():
    model = scripted(
        [FIELDS, notes("Starbuck, chief mate"), notes("Stubb, second mate"), notes(), "Starbuck."]
    )
    read(model)
    first, second, third = (call[-1].content for call in model.seen[1:4])
    assert model.seen[1][0] == model.seen[2][0] == model.seen[3][0]
    before_notes = first[: first.index("none yet")]
    assert second.startswith(before_notes)
    assert third.startswith(second[: second.index("\n\nThe next part")])


def test_a_note_that_the_part_does_not_bear_out_is_dropped():
    model = scripted(
        [
            FIELDS,
            notes("Starbuck, chief mate", "Captain Nemo, submariner"),
            notes(),
            notes(),
            "Starbuck.",
        ]
    )
    steps = read(model)
    dropped = next(s for s in steps if isinstance(s, Degraded))
    assert (
        str(dropped)
        == "drops notes of part 1, since the part does not say: Captain Nemo, submariner"
    )
    assert "Nemo" not in model.seen[-1][-1].content
    assert next(s for s in steps if isinstance(s, Noted)).note == "mates: Starbuck, chief mate"


def test_where_nothing_is_noted_the_search_answers():
    model = scripted([FIELDS, notes(), notes(), notes(), "Starbuck was the chief mate."])
    steps = read(model)
    assert any(isinstance(s, Degraded) and "search" in s.what for s in steps)
    assert any(isinstance(s, Assembled) for s in steps)
    assert steps[-1].found


def test_a_model_that_fails_three_parts_in_a_row_is_asked_no_more():
    bad = json.dumps({"notes": [{"field": "sharks", "value": "none"}]})
    model = scripted([FIELDS, *[bad] * 6, "Starbuck was the chief mate."])
    steps = read(model, part_tokens=10)
    assert any(
        isinstance(s, Degraded) and s.what.startswith("stops after part 3 of") for s in steps
    )
    assert steps[-1].found


def test_a_schema_may_be_given_as_text_or_as_a_file(tmp_path):
    schema = {"properties": {"mates": {"type": "array", "items": {"enum": ["Starbuck", "Stubb"]}}}}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    for given in (json.dumps(schema), str(file)):
        model = scripted([notes("Starbuck"), notes("Stubb"), notes(), "Starbuck and Stubb."])
        assert read(model, schema=given)[-1].found
        assert len(model.seen) == 4


@pytest.mark.parametrize(
    "schema", ["{", "{}", '{"properties": {}}', '{"properties": 3}', "/no/file", "[" * 100_000]
)
def test_a_schema_that_cannot_be_used_says_so(schema):
    with pytest.raises(BadOption, match="schema for notes"):
        read(scripted([]), schema=schema)


def test_a_small_model_proposes_no_fields():
    replies = [notes("Starbuck", field="item"), notes("Stubb", field="item"), notes(), "Starbuck."]
    model = ScriptedLLM(replies)
    steps = read(model)
    assert not any(isinstance(step, Called) for step in steps)
    assert "item 2: Stubb" in model.seen[3][-1].content
    assert steps[-1].found


# ---- the memory --------------------------------------------------------------------------------

PART, LATER = Part("d", Span(0, 10)), Part("d", Span(10, 20))


@pytest.fixture
def memory():
    return TypedMemory(
        {"age": Field("age", "how old", {"type": "integer"}), "who": Field("who", "x")}
    )


def test_a_value_has_its_fields_type(memory):
    kinds = memory.edits_schema(may_correct=False)["properties"]["notes"]["items"]["anyOf"]
    assert kinds[0]["properties"]["value"] == {"type": "integer"}
    assert memory.read({"notes": [{"field": "age", "value": 7}]}) == [("age", "7", 0)]


def test_the_same_again_is_one_note_with_two_places(memory):
    memory.add("who", "Mr. Elliot", PART)
    memory.add("who", "mr elliot", LATER)
    assert [(n.value, n.parts) for n in memory.notes] == [("Mr. Elliot", [PART, LATER])]


def test_a_correction_stands_in_place_of_what_it_corrects(memory):
    memory.add("age", "6", PART)
    memory.add("age", "7", LATER, corrects=1)
    assert [str(n) for n in memory.standing()] == ["[2] age: 7 (corrects 1)"]
    assert "[1] age: 6" in memory.shown(max_tokens=100, count_tokens=len)
    assert memory.read({"notes": [{"field": "age", "value": 8, "corrects": 9}]}) == [
        ("age", "8", 0)
    ]


def test_what_is_shown_is_bounded_and_what_is_kept_is_not(memory):
    for n in range(200):
        memory.add("who", f"person number {n}", PART)
        shown = memory.shown(max_tokens=60, count_tokens=lambda text: len(text.split()))
        assert len(shown.split()) < 80
        assert f"person number {n}" in shown
    assert len(memory.standing()) == 200


@pytest.mark.parametrize(
    "reply",
    [
        3,
        {},
        {"notes": 3},
        {"notes": [3]},
        {"notes": [{"field": "no"}]},
        {"notes": [{"field": "who", "value": "x" * 999}]},
    ],
)
def test_a_reply_of_another_form_is_refused(memory, reply):
    with pytest.raises(BadReply):
        memory.read(reply)


def test_fields_of_a_schema():
    fields = fields_of('{"properties": {"a": {"type": "string", "description": "the a"}}}')
    assert fields["a"].holds == "the a"
