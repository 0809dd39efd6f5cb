"""Plug-ins by file name: dropping a file into the folder is the whole registration."""

from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules
from typing import Any

from serving.errors import UnknownName


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
