"""Prompts: Markdown files with ``$name`` slots, where a missing or an unused name is an error.

Order is a rule: fixed instructions, then the document's part, then what changes (the question
last), so that a server's prefix cache has something to find. Foreign text stands between ``<<<``
and ``>>>``, and the instructions say that nothing in there is one.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from serving.model import Message


def render(package: str, name: str, **slots: str) -> list[Message]:
    """A prompt as messages.

    Args:
        package: Whose ``prompts/`` folder it lies in.
        name: A file there without its suffix; the line ``---`` parts the system message from the
            user's.
        slots: A value for each of its slots, no more and no fewer.

    Raises:
        ValueError: the slots are not those of the file.
    """
    system, _, user = _checked(package, name, slots).template.partition("\n---\n")
    return [
        Message("system", Template(system.strip()).substitute(slots)),
        Message("user", Template(user.strip()).substitute(slots)),
    ]


def text_of(package: str, name: str, **slots: str) -> str:
    """A prompt that is one message of a conversation; as ``render``, without a system part."""
    return _checked(package, name, slots).substitute(slots).strip()


def template_text(package: str, name: str) -> str:
    """The file of a prompt as it is: a part of the key of what is made with it."""
    return _template(package, name).template


def fenced(text: str) -> str:
    """Foreign text that cannot close the fence around it."""
    return text.replace("<<<", "‹‹‹").replace(">>>", "›››")


def _checked(package: str, name: str, slots: Mapping[str, str]) -> Template:
    template = _template(package, name)
    wanted = set(template.get_identifiers())
    if wanted != set(slots):
        raise ValueError(f"prompt {name!r} has the slots {sorted(wanted)}; got {sorted(slots)}")
    return template


@cache
def _template(package: str, name: str) -> Template:
    return Template((files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8"))
