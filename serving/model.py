"""The language model: one small protocol and its values."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]
Ability = Literal["tiny", "small", "large"]
"""What a model can be trusted with, as the catalogue declares it.

tiny: quotes only, its prose is not used unchecked (up to about 0.5B parameters);
small: short prompts, one question at a time (about 1B to 4B); large: the full prompt.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent; of ``prompt_tokens``, ``cached_tokens`` were not computed again."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    @property
    def cached_share(self) -> float:
        """Part of the prompts that came from the prefix cache, 0.0 to 1.0."""
        return self.cached_tokens / max(self.prompt_tokens, 1)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished reply. ``finish`` is "length" where ``max_tokens`` cut it off."""

    text: str
    usage: Usage
    finish: Literal["stop", "length"] = "stop"


@dataclass(frozen=True, slots=True)
class Choice:
    """How likely each option is as the reply.

    Attributes:
        log_probs: One natural logarithm of the probability of the whole option's text per option,
            in the order of the options.
        usage: Tokens spent on it.
    """

    log_probs: tuple[float, ...]
    usage: Usage

    @property
    def best(self) -> int:
        """Position of the most likely option."""
        return max(range(len(self.log_probs)), key=self.log_probs.__getitem__)


Stream = Generator[str, None, Completion]
"""Pieces of a reply as they come; its return value is the whole. Closing it stops the model."""


@runtime_checkable
class LanguageModel(Protocol):
    """A chat model. Every method may be called from several threads; a backend queues if it must.

    Errors: ``ContextOverflow`` before anything is computed, ``ModelUnavailable``, ``BadReply``.
    """

    @property
    def name(self) -> str:
        """What the person calls it; part of every cache key."""
        ...

    @property
    def ability(self) -> Ability:
        """What it can be trusted with."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens of prompt and reply together."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The reply, piece by piece.

        Args:
            messages: The conversation; the first may be a system message.
            max_tokens: Most tokens of the reply.
            temperature: 0 takes the likeliest token always (deterministic).
            stop: The reply ends before any of these.
            schema: A JSON schema that the backend enforces while generating.
        """
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The reply as a whole; same arguments as ``stream``."""
        ...

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """How likely each of the given texts is as the reply.

        Raises:
            ValueError: fewer than two options, or an empty one.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by the model's own tokenizer, without special tokens."""
        ...

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of the whole prompt, chat template included (an upper bound where unknown)."""
        ...

    def close(self) -> None:
        """Gives back memory and connections; the model is not used afterwards."""
        ...


@runtime_checkable
class Parallel(Protocol):
    """A model that gets more done with several requests at a time."""

    @property
    def num_at_once(self) -> int:
        """How many requests keep it busy."""
        ...


def num_at_once(model: LanguageModel) -> int:
    """How many requests are worth sending at a time; 1 for a model that does not say."""
    return model.num_at_once if isinstance(model, Parallel) else 1


@runtime_checkable
class Overloadable(Protocol):
    """A model behind a server that says when it is too busy."""

    @property
    def overloaded_at(self) -> float:
        """When it last said so, as ``time.monotonic()`` has it; 0.0 where it never did."""
        ...


def overloaded_at(model: LanguageModel) -> float:
    """When the model's server last said that it is too busy; 0.0 where it never did."""
    return model.overloaded_at if isinstance(model, Overloadable) else 0.0


def drain(stream: Stream) -> Completion:
    """The whole of a stream."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            completion: Completion = end.value
            return completion
