"""The readers' prompts, in ``agents/prompts/``; how they are written: ``serving/prompting.py``."""

from serving import prompting
from serving.model import Message
from serving.prompting import fenced

__all__ = ["fenced", "render", "text_of"]


def render(name: str, **slots: str) -> list[Message]:
    """A prompt of ``agents/prompts/`` as messages.

    Raises:
        ValueError: the slots are not those of the file.
    """
    return prompting.render("agents", name, **slots)


def text_of(name: str, **slots: str) -> str:
    """A prompt that is one message of a conversation; as ``render``, without a system part."""
    return prompting.text_of("agents", name, **slots)
