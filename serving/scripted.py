"""A language model that replays given replies: for tests of gistree and of what is built on it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving.errors import ContextOverflow
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain

Reply = str | Exception | Callable[[Sequence[Message]], str]


class ScriptedLLM:
    """Replays replies in order; a token is a word.

    Attributes:
        seen: The messages of every call, in order.
    """

    def __init__(
        self,
        replies: Sequence[Reply],
        *,
        choices: Sequence[int] = (),
        ability: Ability = "small",
        context_window: int = 100_000,
        name: str = "scripted",
    ) -> None:
        """Prepares the script.

        Args:
            replies: A text, an error to raise, or a function of the messages, for each call.
            choices: The position of the likeliest option, for each ``choose``.
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
        self._choices = list(choices)

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The next reply, word by word, cut after ``max_tokens`` words.

        Raises:
            ContextOverflow: as any model.
            AssertionError: the script has no more replies, or one is no JSON although a schema
                was given.
        """
        prompt_tokens = self.count_prompt(messages)
        if prompt_tokens + max_tokens > self.context_window:
            raise ContextOverflow(prompt_tokens + max_tokens, self.context_window)
        self.seen.append(tuple(messages))
        if not self._replies:
            raise AssertionError(f"the script has no reply to call {len(self.seen)}")
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else reply(messages)
        if schema is not None:
            json.loads(text)
        words = [word + " " for word in text.split(" ")]
        words[-1] = words[-1][:-1]
        finish = "length" if len(words) > max_tokens else "stop"
        said = words[:max_tokens]
        yield from said
        usage = Usage(prompt_tokens, 0, len(said), 1)
        return Completion("".join(said), usage, "length" if finish == "length" else "stop")

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
        """The option that the script names is the likeliest."""
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        self.seen.append(tuple(messages))
        best = self._choices.pop(0)
        scores = tuple(-0.1 if i == best else -5.0 for i in range(len(options)))
        return Choice(scores, Usage(self.count_prompt(messages), 0, 0, 1))

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Words of all messages."""
        return sum(self.count_tokens(message.content) for message in messages)

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True
