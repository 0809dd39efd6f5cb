"""A loop for any model: each step is a reply bound by a JSON schema."""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.answering import MAX_QUESTION_CHARS
from agents.desk import Desk
from agents.looking import Gathered, Limits
from agents.prompting import fenced, render, text_of
from agents.steps import Called, Degraded, Step
from agents.tools import TOOLS, Reach, Seen, Tool, outline, shown
from retrieval.types import Passage
from serving.asking import ask, field, says_yes
from serving.errors import BadReply
from serving.model import Message, Usage

__all__ = ["SchemaLoop"]

_REPLY_TOKENS = 120
_NEW_PASSAGES = 3
_SHOWN_CHARS = 600  # of a result, in the step


@dataclass(frozen=True, slots=True)
class SchemaLoop:
    """Asks before each step whether what was seen is enough, by log-probability.

    The first search is made without asking. The conversation only grows at its end, so that all
    before it comes from the prefix cache.
    """

    def look(self, desk: Desk, question: str, limits: Limits) -> Generator[Step, None, Gathered]:
        """Called for each tool used; Degraded where the model's reply could not be used."""
        if not any(character.isalnum() for character in question):
            return Gathered((), Usage())  # there are no words to search for
        talk = _Talk(desk, question)
        yield talk.use("search", {"query": question[:MAX_QUESTION_CHARS]})
        usage = Usage()
        for _ in range(limits.max_steps - 1):
            if talk.tokens >= limits.gather_tokens:
                break
            judged = says_yes(desk.model, talk.ending("agent-enough"))
            usage += judged.usage
            if judged.value is None:
                yield Degraded("answers from what was seen so far", judged.why, judged.usage)
                break
            if judged.value >= limits.enough:
                yield Called("answer", "", "it has seen enough", judged.usage)
                break
            asked = ask(
                desk.model,
                talk.ending("agent-next"),
                schema=_schema(TOOLS),
                read=talk.read,
                max_tokens=_REPLY_TOKENS,
            )
            usage += asked.usage
            spent = judged.usage + asked.usage
            if asked.value is None:
                yield Degraded("answers from what was seen so far", asked.why, spent)
                break
            name, arguments, seen = asked.value
            if name == "answer":
                yield Called("answer", "", "it says that it has seen enough", spent)
                break
            yield replace(talk.take(name, arguments, seen), usage=spent)
        return Gathered(tuple(talk.passages), usage)


class _Talk:
    """The conversation so far, and what was seen in it."""

    def __init__(self, desk: Desk, question: str) -> None:
        self.passages: list[Passage] = []
        self.tokens = 0
        self._reach: Reach = desk
        self._desk = desk
        self._done: set[str] = set()
        listed = outline(desk, {}).text
        self._messages = render(
            "agent",
            tools="\n".join(f"- {_signature(tool)}: {tool.does}" for tool in TOOLS),
            documents=fenced(listed),
            question=question[:MAX_QUESTION_CHARS],
        )

    def ending(self, prompt: str) -> list[Message]:
        """The conversation with one more demand at its end."""
        *before, last = self._messages
        return [*before, Message("user", f"{last.content}\n\n{text_of(prompt)}")]

    def read(self, reply: Any) -> tuple[str, dict[str, Any], Seen]:
        """A reply as a call, made.

        Raises:
            BadReply: there is no such tool, its arguments cannot be used, or it was called so
                before.
        """
        name = field(reply, "tool", str)
        if name == "answer":
            return name, {}, Seen("")
        arguments = {key: value for key, value in reply.items() if key != "tool"}
        tool = next((tool for tool in TOOLS if tool.name == name), None)
        if tool is None:
            raise BadReply(f"tool must be one of {', '.join(t.name for t in TOOLS)}, or answer")
        if name == "search":
            return name, arguments, self._new(tool, arguments)
        if self._key(name, arguments) in self._done:
            raise BadReply("this call was made before; make another one, or answer")
        return name, arguments, tool.run(self._reach, arguments)

    def _new(self, search: Tool, arguments: Mapping[str, Any]) -> Seen:
        """What a search finds that was not shown before; so the same again shows more."""
        known = {(p.document_id, p.span) for p in self.passages}
        found = search.run(self._reach, {**arguments, "top_k": len(known) + _NEW_PASSAGES})
        if not found.passages:
            return found
        new = [p for p in found.passages if (p.document_id, p.span) not in known]
        if not new:
            raise BadReply("a search for this shows nothing new; make another call, or answer")
        return shown(self._reach, new[:_NEW_PASSAGES])

    def use(self, name: str, arguments: Mapping[str, Any]) -> Called:
        """Calls a tool without asking the model."""
        name, arguments, seen = self.read({"tool": name, **arguments})
        return self.take(name, arguments, seen)

    def take(self, name: str, arguments: Mapping[str, Any], seen: Seen) -> Called:
        """Puts a call and what it showed at the end of the conversation."""
        key = self._key(name, arguments)
        # What was looked for last was asked for best; more of the same search is worth less.
        latest = 1.0 if key in self._done else 1.1 + len(self._done) / 10
        self._done.add(key)
        self.passages += [
            replace(p, score=latest - rank / 100) for rank, p in enumerate(seen.passages)
        ]
        text = f"<<<\n{fenced(seen.text)}\n>>>"
        self.tokens += self._desk.model.count_tokens(text)
        call = json.dumps({"tool": name, **arguments}, ensure_ascii=False)
        self._messages += [Message("assistant", call), Message("user", text)]
        said = ", ".join(str(value) for value in arguments.values())
        return Called(name, said, " ".join(seen.text.split())[:_SHOWN_CHARS])

    def _key(self, name: str, arguments: Mapping[str, Any]) -> str:
        return json.dumps([name, arguments], sort_keys=True).casefold()


def _signature(tool: Tool) -> str:
    required = tool.parameters.get("required", ())
    names = [n if n in required else f"{n}?" for n in tool.parameters["properties"]]
    return f"{tool.name}({', '.join(names)})"


def _schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """One of the tools with its arguments, or the wish to answer."""
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, **tool.parameters["properties"]},
            "required": ["tool", *tool.parameters.get("required", ())],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    answer = {
        "type": "object",
        "properties": {"tool": {"const": "answer"}},
        "required": ["tool"],
        "additionalProperties": False,
    }
    return {"anyOf": [*calls, answer]}
