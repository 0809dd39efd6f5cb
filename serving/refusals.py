"""What a model server's refusal means."""

import re

from serving.errors import BadReply, ContextOverflow, ModelError, ModelNotFound, ModelUnavailable

_WINDOW = re.compile(
    r"(?:context (?:length|size)|n_ctx|max_model_len)[^0-9]{0,24}?(\d+)"
    r"|(?:maximum|window) (?:of|is) (\d+)"
)
_OVERFLOW = re.compile(
    r"context (?:length|size|window)|context_length|exceed_context|max_model_len"
)
_NUMBER = re.compile(r"\d+")


def explained(url: str, status: int, text: str) -> ModelError:
    """The error that says what an answer of 400 or more means.

    Args:
        url: Of the server.
        status: HTTP status.
        text: Body of the answer.
    """
    if status in (401, 403):
        return ModelUnavailable(f"{url} refuses the key; set GISTREE_API_KEY to a right one")
    if status == 404:
        return ModelNotFound(f"{url} does not know that model or way: {text[:300]}")
    if _OVERFLOW.search(text):
        return _overflow(text) or BadReply(f"{url} says that the prompt is too long: {text[:300]}")
    return BadReply(f"{url} refuses the request ({status}): {text[:300]}")


def _overflow(text: str) -> ContextOverflow | None:
    """Servers say both numbers, each in its own words; the larger is what was asked for."""
    found = _WINDOW.search(text)
    if not found:
        return None
    window = int(found.group(1) or found.group(2))
    larger = [int(n) for n in _NUMBER.findall(text) if int(n) > window]
    return ContextOverflow(max(larger), window) if larger else None
