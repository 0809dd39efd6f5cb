import json

import pytest

from agents.answer import Answer, Citation
from agents.fields import BadSchema, fields_of, value_of
from memory.document import Span
from serving.errors import ModelUnavailable
from serving.scripted import ScriptedLLM

QUOTE = "This Agreement of 3 March 2021 ends after thirty (30) days; the fee is USD 12,500.50."


def answered(text="It is so.", quote=QUOTE, found=True):
    citation = Citation("d", "Contract", Span(0, len(quote)), quote, None, "", (), 0.0, 1.0)
    return Answer(text, (citation,) if found else (), found=found)


def field(rule, name="a_field"):
    (one,) = fields_of({"type": "object", "properties": {name: rule}})
    return one


def read(rule, *replies, answer=None):
    model = ScriptedLLM([json.dumps({"value": reply}) for reply in replies])
    value = value_of(model, field(rule), answer or answered())
    return value, model


def test_a_field_is_asked_by_its_description_title_or_name():
    one, two, three, four = fields_of(
        {
            "properties": {
                "law": {"type": "string", "description": "Which law governs the contract?"},
                "fee": {"type": "number", "title": "Monthly fee"},
                "notice_period": {"type": ["integer", "null"]},
                "effectiveDate": {"type": "string", "format": "date"},
            }
        }
    )
    assert one.question == "Which law governs the contract?"
    assert two.question == "What is the monthly fee?"
    assert three.question == "What is the notice period?"
    assert three.rule == {"type": "integer"}
    assert four.question == "What is the effective date?"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ([], "no JSON schema|properties"),
        ({"type": "object"}, 'needs "properties"'),
        ({"properties": {"a": {"type": "strong"}}}, "no JSON schema"),
        ({"properties": {"a": {"type": "object", "properties": {}}}}, "'a' is .*one of string"),
        ({"properties": {"a": {"type": "array", "items": {"type": "object"}}}}, "'a' is"),
        ({"properties": {"a": {"$ref": "#/x"}}}, "'a' is"),
        ({"properties": {"a": True}}, "give it a type"),
        ({"properties": {"a": json.loads('{"items":' * 300 + "{}" + "}" * 300)}}, "too deep"),
    ],
)
def test_a_schema_that_cannot_be_used_says_which_field_and_what_would_do(schema, says):
    with pytest.raises(BadSchema, match=says):
        fields_of(schema)


@pytest.mark.parametrize(
    ("rule", "reply"),
    [
        ({"type": "integer"}, 30),
        ({"type": "number"}, 12500.5),
        ({"type": "string", "format": "date"}, "2021-03-03"),
        ({"type": "string"}, "the fee"),
        ({"type": "boolean"}, True),
        ({"enum": ["fixed", "open"]}, "fixed"),
        ({"type": "array", "items": {"type": "integer"}}, [3, 30]),
    ],
)
def test_a_value_of_every_kind_that_stands_there(rule, reply):
    value, model = read(rule, reply)
    assert (value.value, value.why) == (reply, "")
    assert value.usage.calls == 1
    assert len(model.seen) == 1


@pytest.mark.parametrize(
    ("rule", "reply", "why"),
    [
        ({"type": "integer"}, 31, "does not stand"),
        ({"type": "integer"}, "thirty", "not of type 'integer'"),
        ({"type": "integer", "maximum": 20}, 30, "maximum"),
        ({"type": "string", "format": "date"}, "3 March 2021", "date"),
        ({"type": "string", "format": "date"}, "1999-01-01", "does not stand"),
        ({"type": "string"}, "Acme Incorporated of Delaware", "does not stand"),
        ({"enum": ["fixed", "open"]}, "closed", "is not one of"),
        ({"type": "array", "items": {"type": "integer"}}, [3, 31], "31 does not stand"),
    ],
)
def test_what_does_not_fit_is_handed_back_once_and_then_left_open(rule, reply, why):
    value, model = read(rule, reply, reply)
    assert value.value is None
    assert why in value.why
    assert len(model.seen) == 2
    assert why in model.seen[1][-1].content


def test_a_second_reply_may_be_right():
    value, _ = read({"type": "integer"}, 31, 30)
    assert (value.value, value.why) == (30, "")
    assert value.usage.calls == 2


@pytest.mark.parametrize("reply", [None, "", []])
def test_no_value_is_a_value_too(reply):
    value, _ = read({"type": "array", "items": {"type": "string"}}, reply)
    assert (value.value, value.why) == (None, "")


def test_what_was_not_found_costs_nothing():
    value, model = read({"type": "string"}, answer=answered(found=False))
    assert value.value is None
    assert model.seen == []


def test_a_model_that_has_gone_away_is_no_missing_value():
    model = ScriptedLLM([ModelUnavailable("gone")])
    with pytest.raises(ModelUnavailable):
        value_of(model, field({"type": "string"}), answered())


@pytest.mark.parametrize(
    ("written", "number"),
    [("12,500.50", 12500.5), ("12.500,50", 12500.5), ("12 500", 12500), ("3,5", 3.5), ("7.", 7)],
)
def test_numbers_are_known_however_they_are_written(written, number):
    quote = f"The fee is EUR {written} a year"
    value, _ = read({"type": "number"}, number, answer=answered(quote=quote))
    assert value.value == number
