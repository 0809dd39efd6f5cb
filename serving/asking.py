"""Asking a model for a reply of a certain form: once more where it fails, then not again.

A weak model's reply may be cut off, empty, or say what it must not. The failure is quoted to the
model once; where the second reply fails too, the reader goes on without it and says so.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from serving.errors import BadReply, ContextOverflow, ModelUnavailable
from serving.model import LanguageModel, Message, Usage

T = TypeVar("T")

_QUOTED_CHARS = 400


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What came of asking.

    Attributes:
        value: What the reply says, or None where no reply could be used.
        usage: Tokens of all attempts.
        why: Why no reply could be used, in words for a ``Degraded`` step; empty where one could.
    """

    value: T | None
    usage: Usage
    why: str = ""


def ask(
    model: LanguageModel,
    messages: Sequence[Message],
    *,
    schema: Mapping[str, Any],
    read: Callable[[Any], T],
    max_tokens: int,
    gone_is_told: bool = True,
) -> Asked[T]:
    """A reply that the schema binds and ``read`` accepts, within two attempts.

    Failures of the model (a window too small, a server that hangs up) are told in ``why``, too.

    Args:
        model: Who is asked.
        messages: The prompt.
        schema: What the backend enforces while generating. It cannot enforce everything, and a
            reply that is cut off breaks it.
        read: Turns the parsed reply into a value; raises ``BadReply`` saying what is wrong with
            it, in words that the model can act on.
        max_tokens: Most tokens of a reply.
        gone_is_told: Whether a server that has gone away is told in ``why``, too.

    Raises:
        ModelUnavailable: the server has gone away, and that is not to be told.
    """
    usage = Usage()
    asked = list(messages)
    why = ""
    for _ in range(2):
        try:
            reply = model.complete(asked, max_tokens=max_tokens, schema=schema)
        except (BadReply, ContextOverflow, ModelUnavailable) as error:
            if isinstance(error, ModelUnavailable) and not gone_is_told:
                raise
            return Asked(None, usage, why or str(error))
        usage += reply.usage
        try:
            return Asked(read(_parsed(reply.text, reply.finish == "length")), usage)
        except BadReply as error:
            why = str(error)
        asked = [
            *messages,
            Message("assistant", reply.text[:_QUOTED_CHARS] or "…"),
            Message("user", f"That reply cannot be used: {why}. Reply again, in the form asked."),
        ]
    return Asked(None, usage, why)


def pick(
    model: LanguageModel, messages: Sequence[Message], options: Sequence[str]
) -> Asked[tuple[float, ...]]:
    """The logarithm of each option's probability as the reply.

    Where the backend gives none, the model writes the option it takes, and that one is certain.
    """
    try:
        choice = model.choose(messages, options)
        return Asked(choice.log_probs, choice.usage)
    except (ContextOverflow, ModelUnavailable) as error:
        return Asked(None, Usage(), str(error))
    except BadReply:
        written = ask(
            model,
            messages,
            schema={
                "type": "object",
                "properties": {"choice": {"enum": list(options)}},
                "required": ["choice"],
                "additionalProperties": False,
            },
            read=lambda reply: _position(reply, options),
            max_tokens=16 + 2 * max(map(model.count_tokens, options)),
        )
    if written.value is None:
        return Asked(None, written.usage, written.why)
    scores = tuple(0.0 if i == written.value else -20.0 for i in range(len(options)))
    return Asked(scores, written.usage)


def says_yes(model: LanguageModel, messages: Sequence[Message]) -> Asked[float]:
    """Probability of yes as the reply, against no; 0.0 to 1.0."""
    asked = pick(model, messages, ["yes", "Yes", "no", "No"])
    if asked.value is None:
        return Asked(None, asked.usage, asked.why)
    highest = max(asked.value)
    weights = [math.exp(score - highest) for score in asked.value]
    return Asked(sum(weights[:2]) / sum(weights), asked.usage)


def field(reply: Any, name: str, kind: type[T]) -> T:
    """A field of a parsed reply.

    Raises:
        BadReply: the reply has no such field, or of another kind.
    """
    if not isinstance(reply, dict) or not isinstance(reply.get(name), kind):
        raise BadReply(f'it needs the field "{name}" ({kind.__name__})')
    value: T = reply[name]
    return value


def _position(reply: Any, options: Sequence[str]) -> int:
    said = field(reply, "choice", str)
    if said not in options:
        raise BadReply(f"the choice must be one of: {', '.join(options)}")
    return list(options).index(said)


def _parsed(text: str, is_cut_off: bool) -> Any:
    if not text.strip():
        raise BadReply("it is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if is_cut_off:
            raise BadReply("it is too long and was cut off; be much shorter") from error
        raise BadReply(f"it is no JSON ({error})") from error
