"""Models for the readers' tests: one that obliges any schema, and several that are of no use."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving.errors import BadReply, ContextOverflow, ModelUnavailable
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain


class ObligingLLM:
    """Replies to whatever it is asked, in the form that is asked; a token is a word.

    Its prose is the first sentence between the fences of the prompt, so that an answer of it is
    borne out. Of several options it takes the first.

    Attributes:
        seen: The messages of every call.
        spent: Tokens of all calls together.
    """

    name = "obliging"

    def __init__(
        self,
        *,
        ability: Ability = "small",
        context_window: int = 100_000,
        say: Callable[[Sequence[Message]], str] | None = None,
        break_at: int | None = None,
    ) -> None:
        """Prepares the model.

        Args:
            ability: As of any model.
            context_window: Words.
            say: What it replies, whatever form is asked; where not given, it obliges.
            break_at: Number of the call, from 0, in whose middle its server goes away for once.
        """
        self.ability: Ability = ability
        self.context_window = context_window
        self.seen: list[Sequence[Message]] = []
        self.spent = Usage()
        self._say = say
        self._break_at = break_at

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        assert temperature == 0.0
        prompt = self._take(messages, max_tokens)
        if self._say is not None:
            text = self._say(messages)
        elif schema is not None:
            text = json.dumps(obliged(schema, first_sentence(messages)))
        else:
            text = first_sentence(messages)
        words = re.findall(r"\S*\s*", text)
        words = [word for word in words if word]
        if self._breaks():
            yield from words[: len(words) // 2]
            raise ModelUnavailable("the server hung up")
        yield from words[:max_tokens]
        usage = Usage(prompt, 0, min(len(words), max_tokens), 1)
        self.spent += usage
        cut = len(words) > max_tokens
        return Completion("".join(words[:max_tokens]), usage, "length" if cut else "stop")

    def complete(self, messages: Sequence[Message], **options: Any) -> Completion:
        return drain(self.stream(messages, **options))

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        usage = Usage(self._take(messages, 1), 0, 0, 1)
        if self._breaks():
            raise ModelUnavailable("the server hung up")
        self.spent += usage
        return Choice((-0.1, *(-4.0 for _ in options[1:])), usage)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens(message.content) for message in messages)

    def close(self) -> None:
        pass

    def _take(self, messages: Sequence[Message], reply_tokens: int) -> int:
        prompt = self.count_prompt(messages)
        if prompt + reply_tokens > self.context_window:
            raise ContextOverflow(prompt, self.context_window, reply_tokens)
        self.seen.append(tuple(messages))
        return prompt

    def _breaks(self) -> bool:
        return self._break_at == len(self.seen) - 1


class WithoutScores(ObligingLLM):
    """As behind a server that gives no log-probabilities."""

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        raise BadReply("this server gives no log-probabilities")


def first_sentence(messages: Sequence[Message]) -> str:
    """The first sentence of the text between the last fences, without marks of places."""
    fences = re.findall(r"<<<\n(.*?)\n>>>", "\n".join(m.content for m in messages), re.DOTALL)
    text = re.sub(r"^\[[^\]]*\]$", "", fences[-1] if fences else "", flags=re.MULTILINE)
    found = re.search(r"[^\s.][^.]*\.", text)
    return " ".join(found.group().split()) if found else "Nothing at all."


def obliged(schema: Mapping[str, Any], words: str) -> Any:
    """The least value that a JSON schema allows, with these words as its text."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return obliged(schema["anyOf"][-1], words)
    match schema.get("type"):
        case "object":
            needed = schema.get("required", schema["properties"])
            return {name: obliged(schema["properties"][name], words) for name in needed}
        case "array":
            return [obliged(schema["items"], words)]
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return True
        case _:
            return words
