"""Plug-ins by file name: dropping a file into the folder is the whole registration."""

from dataclasses import fields
from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules
from typing import Any, get_type_hints

from serving.errors import BadOption, UnknownName


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of the plug-ins in a package, and of outside ones with that entry-point group.

    Args:
        package: For example "agents.readers"; an outside package registers a class under the
            entry-point group "gistree." + that name.
    """
    own = {module.name for module in iter_modules(import_module(package).__path__)}
    outside = {entry.name for entry in metadata.entry_points(group=f"gistree.{package}")}
    return tuple(sorted(own | outside))


def load(package: str, name: str) -> Any:
    """The one class of a plug-in: what its module's ``__all__`` names.

    Raises:
        UnknownName: there is no such plug-in; the message lists the known ones.
    """
    if name not in names(package):
        raise UnknownName(package.rsplit(".", 1)[-1].removesuffix("s"), name, names(package))
    for entry in metadata.entry_points(group=f"gistree.{package}"):
        if entry.name == name:
            return entry.load()
    module = import_module(f"{package}.{name}")
    return getattr(module, module.__all__[0])


def make(package: str, spec: str) -> Any:
    """A plug-in by its name and options, such as "oprag" or "oprag:top_k=20,order=relevance".

    Args:
        package: As in ``names``.
        spec: The name; then, behind a colon, fields of its dataclass with their values.

    Raises:
        UnknownName: there is no such plug-in, or no such option; the message lists the known ones.
        BadOption: a value is not of the option's type.
    """
    name, _, rest = spec.partition(":")
    plugin = load(package, name)
    options: dict[str, Any] = {}
    known = [field.name for field in fields(plugin) if field.init]
    for pair in filter(None, rest.split(",")):
        option, _, value = pair.partition("=")
        if option not in known:
            raise UnknownName(f"option of {name}", option, known)
        options[option] = _value(get_type_hints(plugin)[option], value, f"{name}:{option}")
    return plugin(**options)


def _value(hint: Any, value: str, what: str) -> Any:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise BadOption(f"{what} cannot be {value!r}: {reason}") from error
