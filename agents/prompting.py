"""Prompts: Markdown files with ``$name`` slots, where a missing or an unused name is an error.

Order is a rule: fixed instructions, then the document's part, then what changes (the question
last), so that a server's prefix cache has something to find.
"""

from functools import cache
from importlib.resources import files
from string import Template

from serving.model import Message


@cache
def _template(name: str) -> Template:
    return Template((files("agents") / "prompts" / f"{name}.md").read_text(encoding="utf-8"))


def render(name: str, **slots: str) -> list[Message]:
    """A prompt as messages.

    Args:
        name: A file of ``agents/prompts/`` without its suffix; the line ``---`` parts the system
            message from the user's.
        slots: A value for each of its slots, no more and no fewer.

    Raises:
        ValueError: the slots are not those of the file.
    """
    template = _template(name)
    wanted = set(template.get_identifiers())
    if wanted != set(slots):
        raise ValueError(f"prompt {name!r} has the slots {sorted(wanted)}; got {sorted(slots)}")
    system, _, user = template.template.partition("\n---\n")
    return [
        Message("system", Template(system.strip()).substitute(slots)),
        Message("user", Template(user.strip()).substitute(slots)),
    ]


def text_of(name: str, **slots: str) -> str:
    """A prompt that is one message of a conversation; as ``render``, without a system part."""
    template = _template(name)
    if set(template.get_identifiers()) != set(slots):
        raise ValueError(
            f"prompt {name!r} has the slots {sorted(template.get_identifiers())}; "
            f"got {sorted(slots)}"
        )
    return template.substitute(slots).strip()


def fenced(text: str) -> str:
    """A document's text as it may stand between fences: it cannot close them."""
    return text.replace("<<<", "‹‹‹").replace(">>>", "›››")
