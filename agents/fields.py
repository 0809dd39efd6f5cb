"""Fields of a form that is filled in from a document: each one asked, checked and quoted.

A field is a question of its own, which a reader answers with citations. Its value is then read off
the answer and the quotes, bound by the field's JSON schema, and must stand in them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.answer import Answer
from agents.prompting import fenced, render
from retrieval.words import index_words
from serving.asking import ask
from serving.errors import BadReply, GistreeError
from serving.model import LanguageModel, Usage

_SIMPLE = ("string", "number", "integer", "boolean")
_MOST_TOKENS = 160
_NUMBER = re.compile(r"\d[\d,.\u00a0' ]*")
_LEAST_WORDS = 0.5  # share of a text's words that must stand in the answer or its quotes


class BadSchema(GistreeError):
    """A schema of fields cannot be used; says which part and what would do."""


@dataclass(frozen=True)
class Field:
    """A field.

    Attributes:
        name: As the schema has it.
        question: What is asked for it.
        schema: The JSON schema of its value, as JSON.
    """

    name: str
    question: str
    schema: str

    @cached_property
    def rule(self) -> dict[str, Any]:
        """The schema, parsed."""
        rule: dict[str, Any] = json.loads(self.schema)
        return rule


@dataclass(frozen=True, slots=True)
class Value:
    """What came of a field.

    Attributes:
        value: As the schema wants it; None where the document does not hold it.
        usage: Tokens of reading it off the answer.
        why: Why no reply of the model could be used, or empty.
    """

    value: Any
    usage: Usage = Usage()
    why: str = ""


def fields_of(schema: Any) -> tuple[Field, ...]:
    """The fields of a JSON schema of one flat object, in its order.

    Args:
        schema: Parsed. A property is a string, number, integer, boolean or enum, or a list of such;
            its "description" is what is asked, else its title or name is. "null" among its types
            is taken for granted.

    Raises:
        BadSchema: it is no JSON schema, or not of that form.
    """
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise BadSchema(f"it is no JSON schema: {error.message}") from error
    except RecursionError as error:
        raise BadSchema("it is nested too deep to be checked") from error
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        raise BadSchema('it needs "properties", a field each')
    return tuple(_field(name, rule) for name, rule in properties.items())


def _field(name: str, rule: Any) -> Field:
    if not isinstance(rule, Mapping):
        raise BadSchema(f"the field {name!r} says nothing of its value; give it a type")
    own = {key: each for key, each in rule.items() if key not in ("description", "title")}
    own = _without_null(own)
    kind = own.get("type")
    of = own.get("items", {}) if kind == "array" else own
    if not isinstance(of, Mapping) or not (of.get("type") in _SIMPLE or "enum" in of):
        raise BadSchema(
            f"the field {name!r} is {json.dumps(rule)[:80]}; a field is one of "
            f"{', '.join(_SIMPLE)}, an enum, or an array of one of these"
        )
    asked = str(rule.get("description") or "").strip()
    if not asked:
        words = str(rule.get("title") or re.sub(r"[_\-]+|(?<=[a-z])(?=[A-Z])", " ", name)).lower()
        asked = f"What is the {words}?"
    return Field(name, asked, json.dumps(own))


def _without_null(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule for a value that is there: no value is always allowed."""
    if isinstance(rule.get("type"), list):
        kinds = [kind for kind in rule["type"] if kind != "null"]
        rule = rule | {"type": kinds[0] if len(kinds) == 1 else kinds}
    if "enum" in rule:
        rule = rule | {"enum": [option for option in rule["enum"] if option is not None]}
    return rule


def value_of(model: LanguageModel, field: Field, answer: Answer) -> Value:
    """The field's value out of an answer to its question.

    Args:
        model: Reads it off.
        field: Which.
        answer: To the field's question; one that was not found has no value, at no cost.

    Raises:
        ModelUnavailable: the model has gone away.
    """
    if not answer.found:
        return Value(None)
    quotes = "\n".join(citation.quote for citation in answer.citations)
    bound = {"anyOf": [field.rule, {"type": "null"}]}
    asked = ask(
        model,
        render(
            "field-value",
            field=field.name,
            question=field.question,
            form=_in_words(field.rule),
            quotes=fenced(quotes),
            answer=fenced(answer.text),
        ),
        schema={
            "type": "object",
            "properties": {"value": bound},
            "required": ["value"],
            "additionalProperties": False,
        },
        read=lambda reply: (_checked(field, reply, f"{quotes}\n{answer.text}"),),
        max_tokens=_MOST_TOKENS,
        gone_is_told=False,
    )
    if asked.value is None:
        return Value(None, asked.usage, asked.why)
    return Value(asked.value[0], asked.usage)


def _in_words(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return "one of: " + ", ".join(map(str, rule["enum"]))
    if rule.get("type") == "array":
        return f"a list, each entry {_in_words(rule.get('items', {}))}"
    kind = {"date": "a date, as YYYY-MM-DD", "date-time": "date and time, as ISO 8601"}.get(
        str(rule.get("format", "")), ""
    )
    names = {"string": "a text, as short as can be", "boolean": "true or false"}
    return kind or names.get(str(rule.get("type")), f"a plain {rule.get('type')}, without a unit")


def _checked(field: Field, reply: Any, source: str) -> Any:
    """The value of a reply.

    Raises:
        BadReply: it is not as the schema wants it, or does not stand in the source.
    """
    import jsonschema

    if not isinstance(reply, dict) or "value" not in reply:
        raise BadReply('it needs the field "value"')
    value = reply["value"]
    if value is None or value in ("", []):
        return None
    checker = jsonschema.Draft202012Validator(
        field.rule, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    wrong = next(iter(checker.iter_errors(value)), None)
    if wrong is not None:
        raise BadReply(f"the value does not fit: {wrong.message[:200]}")
    for each in value if isinstance(value, list) else [value]:
        if not _stands(field.rule, each, source):
            raise BadReply(f"{each!r} does not stand in the answer or its quotes")
    return value


def _stands(rule: Mapping[str, Any], value: Any, source: str) -> bool:
    """Whether a value was taken from the source, as far as that can be told."""
    of = rule.get("items", rule)
    if isinstance(value, bool) or "enum" in of:
        return True  # judged, not copied
    if isinstance(value, int | float):
        there = {_number(found) for found in _NUMBER.findall(source)}
        return float(value) in there
    if str(of.get("format", "")).startswith("date"):
        return value[:4] in source
    wanted = set(index_words(value))
    return not wanted or len(wanted & set(index_words(source))) >= _LEAST_WORDS * len(wanted)


def _number(text: str) -> float | None:
    """A number as it is written, with its thousands parted by commas, dots, spaces or quotes."""
    plain = re.sub(r"[\u00a0' ]", "", text).strip(".,")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"\d+,\d{1,2}", plain):
        plain = plain.replace(",", ".")
    try:
        return float(plain.replace(",", ""))
    except ValueError:
        return None
