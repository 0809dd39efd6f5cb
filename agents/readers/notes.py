"""Typed notes, kept while the document streams by; the answer comes from them."""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.answer import place
from agents.answering import MAX_QUESTION_CHARS, Answering, Basis
from agents.desk import Desk
from agents.notebook import Note, basis_of, is_borne_out
from agents.parts import Part, marked, named, plan
from agents.passages import gather
from agents.prompting import fenced, render
from agents.question_kind import kind_of
from agents.steps import Called, Degraded, Noted, Searched, Step
from agents.typed_memory import Field, TypedMemory, fields_of
from serving.asking import ask, field
from serving.errors import BadOption, BadReply
from serving.model import Message, Usage

__all__ = ["NotesReader"]

_MOST_FAILURES = 3
_MOST_FIELDS = 4
_FACTS = Field("fact", "what the part says that helps to answer the question")
_USUAL = {
    "count": Field("item", "one of the things that the question wants counted"),
    "list": Field("item", "one of the things that the question asks for, with what is said of it"),
    "summarise": Field("event", "what happens or is argued in the part, in a sentence"),
}


@dataclass(frozen=True, slots=True)
class NotesReader:
    """Streams over the parts with an in-context memory of typed notes (PRISM, arXiv:2412.18914).

    The reply to a part holds new notes alone, not the memory written anew: writing is slow. A
    note that its part does not bear out is dropped.

    Attributes:
        schema: JSON schema of the memory, or a file that holds one. Where empty, a large model
            proposes one from the question, and any other keeps notes of one kind.
        max_parts: Most parts that are read; 0 reads all, which may take long.
        part_tokens: About how long a part is; 0 takes the token budget.
        edit_tokens: Most tokens of the reply to a part.
        top_k: How many passages the search gives: what is read where not all is, and what is
            answered from where nothing was noted.
    """

    schema: str = ""
    max_parts: int = 0
    part_tokens: int = 0
    edit_tokens: int = 160
    top_k: int = 12

    def read(self, desk: Desk, question: str) -> Iterator[Step]:
        """Searched, Called (the fields), Noted for each part, Assembled, Verified, Answer."""
        answering = Answering("notes", time.perf_counter())
        passages = desk.search(question, self.top_k)
        yield Searched(question, tuple(passages))
        fields, usage = yield from self._fields(desk, question)
        memory = TypedMemory(fields)
        reading = plan(desk, passages, part_tokens=self.part_tokens, max_parts=self.max_parts)
        yield from reading.steps(desk)
        usage += yield from self._stream(desk, question, memory, reading.parts)
        notes = _notes(desk, memory)
        if notes:
            basis = yield from basis_of(desk, question, notes, passages, share=0.7)
        elif passages:
            yield Degraded("answers from what the search found", "nothing was noted")
            basis = yield from gather(desk, question, passages)
        else:
            yield answering.not_found(desk, Basis("", (), ()), usage)
            return
        yield from answering.answer(desk, question, basis, usage)

    def _fields(
        self, desk: Desk, question: str
    ) -> Generator[Step, None, tuple[dict[str, Field], Usage]]:
        if self.schema:
            return fields_of(_schema_text(self.schema)), Usage()
        usual = _USUAL.get(kind_of(question)[0], _FACTS)
        if desk.model.ability != "large":
            return {usual.name: usual}, Usage()
        proposed = ask(
            desk.model,
            render("notes-fields", question=question[:MAX_QUESTION_CHARS]),
            schema=_PROPOSAL,
            read=_proposed,
            max_tokens=160,
        )
        if proposed.value is None:
            yield Degraded("keeps notes of one kind", proposed.why, proposed.usage)
            return {usual.name: usual}, proposed.usage
        said = "; ".join(f"{each.name}: {each.holds}" for each in proposed.value.values())
        yield Called("fields", question[:80], said, proposed.usage)
        return proposed.value, proposed.usage

    def _stream(
        self, desk: Desk, question: str, memory: TypedMemory, parts: Sequence[Part]
    ) -> Generator[Step, None, Usage]:
        usage = Usage()
        failures = 0
        may_correct = desk.model.ability == "large"
        for number, part in enumerate(parts, 1):
            edits = ask(
                desk.model,
                self._prompt(desk, question, memory, part),
                schema=memory.edits_schema(may_correct=may_correct),
                read=memory.read,
                max_tokens=self.edit_tokens,
            )
            usage += edits.usage
            failures = failures + 1 if edits.value is None else 0
            if edits.value is None:
                yield Degraded(f"leaves part {number} without notes", edits.why)
            made, dropped = [], []
            for name, value, corrects in edits.value or ():
                if is_borne_out(desk, question, value, part):
                    made.append(memory.add(name, value, part, corrects))
                else:
                    dropped.append(value)
            if dropped:
                said = "; ".join(dropped)
                yield Degraded(f"drops notes of part {number}", f"the part does not say: {said}")
            where = place(desk.document(part.document_id), part.span)
            said = "; ".join(f"{note.field}: {note.value}" for note in made)
            yield Noted(where, said, bool(made), number, len(parts), edits.usage)
            if failures >= _MOST_FAILURES and number < len(parts):
                yield Degraded(
                    f"stops after part {number} of {len(parts)}", f"{failures} in a row failed"
                )
                break
        return usage

    def _prompt(self, desk: Desk, question: str, memory: TypedMemory, part: Part) -> list[Message]:
        notes = memory.shown(
            max_tokens=desk.budget_tokens // 2, count_tokens=desk.model.count_tokens
        )
        return render(
            "notes",
            question=question[:MAX_QUESTION_CHARS],
            fields="\n".join(f"- {each.name}: {each.holds}" for each in memory.fields.values()),
            notes=fenced(notes),
            part=fenced(marked(desk, part)),
        )


_PROPOSAL = {
    "type": "object",
    "properties": {
        "fields": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "holds": {"type": "string"}},
                "required": ["name", "holds"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["fields"],
    "additionalProperties": False,
}


def _proposed(reply: Any) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for each in field(reply, "fields", list)[:_MOST_FIELDS]:
        name = "_".join(field(each, "name", str).split())[:30]
        if not any(character.isalnum() for character in name):
            raise BadReply("a field needs a name of one word")
        fields.setdefault(name, Field(name, " ".join(field(each, "holds", str).split())[:120]))
    if not fields:
        raise BadReply("at least one field is needed")
    return fields


def _notes(desk: Desk, memory: TypedMemory) -> list[Note]:
    """The memory as lines, under each field as many as it has, with where each was said."""
    counts = dict.fromkeys(memory.fields, 0)
    notes = []
    for note in memory.standing():
        counts[note.field] += 1
        text = f"{note.field} {counts[note.field]}: {note.value} ({named(desk, note.parts[0])})"
        notes.append(Note(text, note.parts, float(len(note.parts))))
    return notes


def _schema_text(schema: str) -> str:
    if schema.lstrip().startswith("{"):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadOption(f"the schema for notes {schema!r} cannot be read: {error}") from error
