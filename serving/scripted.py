"""A language model that replays given replies: for tests of gistree and of what uses it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from serving.errors import ContextOverflow, ModelUnavailable
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that comes in a certain way.

    Attributes:
        text: All of it.
        finish: "length" says that it was cut off.
        word_s: Seconds before each word.
        breaks_after: Words after which the model goes away.
    """

    text: str
    finish: Literal["stop", "length"] = "stop"
    word_s: float = 0.0
    breaks_after: int | None = None


Line = str | Reply | Exception | Callable[[Sequence[Message]], str]


class ScriptedLLM:
    """Replays replies in order; a token is a word.

    Attributes:
        seen: The messages of every call, in order.
    """

    def __init__(
        self,
        replies: Sequence[Line],
        *,
        choices: Sequence[int] = (),
        ability: Ability = "small",
        context_window: int = 100_000,
        name: str = "scripted",
    ) -> None:
        """Prepares the script.

        Args:
            replies: A text, one that comes in a certain way, an error to raise, or a function of
                the messages, for each call.
            choices: The position of the likeliest option, for each ``choose``; where none are
                given it is always the first.
            ability: As of any model.
            context_window: Words.
            name: As of any model.
        """
        self.name = name
        self.ability: Ability = ability
        self.context_window = context_window
        self.seen: list[Sequence[Message]] = []
        self.closed = False
        self._replies = list(replies)
        self._choices = list(choices) if choices else None

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The next reply, word by word, cut after ``max_tokens`` words and before a stop.

        Raises:
            ContextOverflow: as any model.
            ModelUnavailable: where the script says so.
            AssertionError: the script has no more replies, or a whole one is not what the schema
                asks for, as no model would reply.
        """
        prompt_tokens = self._check_fits(messages, max_tokens)
        self.seen.append(tuple(messages))
        reply = self._next_reply(messages)
        words = _words(_before(reply.text, stop))
        if schema is not None and reply.finish == "stop" and len(words) <= max_tokens:
            _check(reply.text, schema)
        for number, word in enumerate(words[:max_tokens]):
            if number == reply.breaks_after:
                raise ModelUnavailable("the script says that the model goes away here")
            time.sleep(reply.word_s)
            yield word
        finish = "length" if len(words) > max_tokens else reply.finish
        said = words[:max_tokens]
        return Completion("".join(said), Usage(prompt_tokens, 0, len(said), 1), finish)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The next reply as a whole."""
        return drain(
            self.stream(
                messages, max_tokens=max_tokens, temperature=temperature, stop=stop, schema=schema
            )
        )

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """The option that the script names is the likeliest, or the first."""
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        prompt_tokens = self._check_fits(messages, max(map(self.count_tokens, options)))
        self.seen.append(tuple(messages))
        if self._choices == []:
            raise AssertionError(f"the script has no choice for call {len(self.seen)}")
        best = self._choices.pop(0) if self._choices else 0
        scores = tuple(-0.1 if i == best else -5.0 for i in range(len(options)))
        return Choice(scores, Usage(prompt_tokens, 0, 0, 1))

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Words of all messages."""
        return sum(self.count_tokens(message.content) for message in messages)

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True

    def _check_fits(self, messages: Sequence[Message], reply_tokens: int) -> int:
        prompt_tokens = self.count_prompt(messages)
        if prompt_tokens + reply_tokens > self.context_window:
            raise ContextOverflow(prompt_tokens, self.context_window, reply_tokens)
        return prompt_tokens

    def _next_reply(self, messages: Sequence[Message]) -> Reply:
        if not self._replies:
            raise AssertionError(f"the script has no reply to call {len(self.seen)}")
        line = self._replies.pop(0)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Reply):
            return line
        return Reply(line if isinstance(line, str) else line(messages))


def _words(text: str) -> list[str]:
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    return [word for word in words if word]


def _before(text: str, stop: Sequence[str]) -> str:
    return text[: min((text.index(each) for each in stop if each in text), default=len(text))]


def _check(text: str, schema: Mapping[str, Any]) -> None:
    """Whether a reply has the fields that a schema requires: what a script gets wrong most."""
    try:
        reply = json.loads(text)
    except ValueError as error:
        raise AssertionError(f"the script replies {text!r}, and a schema asks for JSON") from error
    if schema.get("type") == "object":
        missing = set(schema.get("required", ())) - set(reply if isinstance(reply, dict) else ())
        if missing:
            raise AssertionError(f"the script replies {text!r} without {sorted(missing)}")
