"""What OpenAI's chat completions leave out, and how each kind of server is asked for it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from serving.model import Choice, Message


class Dialect(Protocol):
    """A kind of server. Errors are those of ``serving.wire``."""

    @property
    def name(self) -> str:
        """Of the kind."""
        ...

    @property
    def scores_text(self) -> bool:
        """Whether ``choose`` gives the probabilities of the options' own texts.

        Where not, it gives those of letters that stand for them: it says which option the model
        would pick, not how likely it would write it.
        """
        ...

    @property
    def chat_options(self) -> Mapping[str, Any]:
        """What a chat request carries beside the standard's fields."""
        ...

    def window(self) -> int:
        """Tokens of prompt and reply together; 0 where the server does not say."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text without special ones; where nobody can count, more than there are."""
        ...

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt, chat template included; same bound."""
        ...

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """Log-probabilities of at least two options, none empty; see ``scores_text``."""
        ...


def as_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as JSON."""
    return [{"role": m.role, "content": m.content} for m in messages]


NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low"}}
"""Answers are short and checked against quotes: thinking aloud would eat the reply's tokens.

Templates that know neither word pass over it.
"""
