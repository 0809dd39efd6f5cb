"""A memory of typed notes that only grows at its end (PRISM, arXiv:2412.18914).

What was noted is never rewritten, so that the prompt's beginning stays as it was and comes from
the prefix cache. A note that corrects another says so, and takes its place in the answer.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.parts import Part
from serving.errors import BadOption, BadReply

_PLAIN = {"type": "string"}
_VALUE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Field:
    """A kind of notes.

    Attributes:
        name: One word.
        holds: What belongs there, for the model.
        schema: JSON schema of one value.
    """

    name: str
    holds: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _PLAIN)


@dataclass(slots=True)
class TypedNote:
    """A value under a field, with all the parts that say it."""

    number: int
    field: str
    value: str
    parts: list[Part]
    corrects: int = 0

    def __str__(self) -> str:
        corrects = f" (corrects {self.corrects})" if self.corrects else ""
        return f"[{self.number}] {self.field}: {self.value}{corrects}"


class TypedMemory:
    """Notes under fields.

    Attributes:
        fields: By name.
        notes: In the order in which they were made.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = dict(fields)
        self.notes: list[TypedNote] = []
        self._shown_from = 0

    def edits_schema(self, *, may_correct: bool) -> dict[str, Any]:
        """Schema of a reply that adds notes, each with a value of its field's type."""
        kinds = []
        for each in self.fields.values():
            properties: dict[str, Any] = {"field": {"const": each.name}, "value": each.schema}
            required = ["field", "value"]
            if may_correct:
                properties["corrects"] = {"type": "integer", "minimum": 0}
                required.append("corrects")
            kinds.append(
                {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": False,
                }
            )
        edits = {"type": "array", "items": {"anyOf": kinds}, "maxItems": 6}
        return {
            "type": "object",
            "properties": {"notes": edits},
            "required": ["notes"],
            "additionalProperties": False,
        }

    def read(self, reply: Any) -> list[tuple[str, str, int]]:
        """The edits of a reply as (field, value, number of the note it corrects or 0).

        Raises:
            BadReply: it is of another form.
        """
        if not isinstance(reply, dict) or not isinstance(reply.get("notes"), list):
            raise BadReply('it needs the field "notes" (a list)')
        edits = []
        for edit in reply["notes"]:
            if not isinstance(edit, dict) or edit.get("field") not in self.fields:
                raise BadReply(f"field must be one of: {', '.join(self.fields)}")
            value = _plain(edit.get("value"))
            if len(value) > _VALUE_CHARS:
                raise BadReply(f"a value must be short; got one of {len(value)} characters")
            corrects = edit.get("corrects", 0)
            known = isinstance(corrects, int) and 0 < corrects <= len(self.notes)
            if any(character.isalnum() for character in value):
                edits.append((edit["field"], value, corrects if known else 0))
        return edits

    def add(self, name: str, value: str, part: Part, corrects: int = 0) -> TypedNote:
        """A new note; where the same was noted before, that one with one more place."""
        same = next(
            (n for n in self.notes if n.field == name and _bare(n.value) == _bare(value)), None
        )
        if same is not None:
            if part not in same.parts:
                same.parts.append(part)
            return same
        note = TypedNote(len(self.notes) + 1, name, value, [part], corrects)
        self.notes.append(note)
        return note

    def shown(self, *, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
        """The notes as a prompt shows them; where they are too many, the later half.

        Half at a time, so that in most steps the text begins as it did in the step before.
        """
        lines = [str(note) for note in self.notes[self._shown_from :]]
        while len(lines) > 1 and count_tokens("\n".join(lines)) > max_tokens:
            self._shown_from += (len(lines) + 1) // 2
            lines = [str(note) for note in self.notes[self._shown_from :]]
        if self._shown_from:
            lines.insert(0, f"({self._shown_from} earlier notes are kept elsewhere)")
        return "\n".join(lines) or "none yet"

    def standing(self) -> list[TypedNote]:
        """The notes that no later one corrects."""
        corrected = {note.corrects for note in self.notes}
        return [note for note in self.notes if note.number not in corrected]


def fields_of(schema: str) -> dict[str, Field]:
    """The fields that a JSON schema describes.

    Args:
        schema: An object's, as JSON; each property is a field. Of an array, each item is a note.

    Raises:
        BadOption: it is no such schema.
    """
    try:
        properties = json.loads(schema)["properties"]
        fields = {
            name: Field(
                name,
                str(kind.get("description", name)),
                kind["items"] if kind.get("type") == "array" else kind,
            )
            for name, kind in properties.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadOption(
            "a schema for notes is JSON such as "
            '{"properties": {"people": {"type": "array", "items": {"type": "string"}}}}; '
            f"got {schema[:80]!r} ({error})"
        ) from error
    if not fields:
        raise BadOption("a schema for notes needs at least one property")
    return fields


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False) if value is not None else ""


def _bare(value: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in value.casefold()).split())
