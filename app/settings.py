"""Settings: the only place that reads the environment or a file of settings."""

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

import platformdirs
from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from serving.errors import GistreeError


class BadSettings(GistreeError):
    """A setting has no such name or value; the message says which, and where it stands."""


def settings_file() -> Path:
    """Where settings are kept between runs."""
    return platformdirs.user_config_path("gistree") / "settings.toml"


class Settings(BaseSettings):
    """What the person chose. Each has an environment variable: GISTREE_ and the name in capitals.

    The environment wins over the settings file. An unknown name in the file is an error.

    Raises:
        BadSettings: a name or a value cannot be used, or the file is no TOML.
    """

    model_config = SettingsConfigDict(env_prefix="GISTREE_", extra="forbid")

    library: str = Field(
        default_factory=lambda: str(platformdirs.user_data_path("gistree") / "library"),
        description="Folder or database URL of the library",
    )
    libraries: str = Field(
        default="",
        description="Folder in which the web page keeps a library for each person, who must log "
        "in; empty: one library for all (docs/web.md)",
    )
    models: Path = Field(
        default_factory=lambda: platformdirs.user_cache_path("gistree") / "models",
        description="Folder of the model cache",
    )
    model: str = Field(
        default="auto",
        description="Language model: 'auto', a name of the catalogue, a .gguf file, "
        "the URL of an OpenAI-compatible server, with #name where it has several, "
        "langchain:provider:model, or vllm:NAME for vLLM in this process",
    )
    api_key: str = Field(default="", description="Key for that server")
    embedder: str = Field(
        default="minilm-l6-v2-int8",
        description="Embedder: a name of the catalogue, or a sentence-transformers name or path",
    )
    reader: str = Field(default="oprag", description="Reader where none is asked for")
    pruner: str = Field(
        default="evidence", description="Pruner, with options as in provence:model=NAME, or 'none'"
    )
    reranker: str = Field(
        default="", description="Cross-encoder by name or path (extra sentence-transformers)"
    )
    budget_tokens: int = Field(
        default=0, ge=0, description="Tokens of document text in a prompt; 0 suits the model"
    )
    keep_model_s: float = Field(
        default=600.0,
        ge=0,
        description="Seconds that the web page's server keeps a local language model in memory "
        "after the last question",
    )
    vectors_in_memory: int = Field(
        default=500_000,
        ge=1,
        description="Passages whose vectors are searched in memory, 800 bytes each with the "
        "default embedder; past that they are searched on the disk",
    )
    warm_up: bool = Field(
        default=False,
        description="Whether the web page has the model read short documents ahead, while the "
        "person types (docs/web.md)",
    )
    batches_stand_back: bool = Field(
        default=True,
        description="Whether a batch begins nothing new while a person waits for an answer, where "
        "the model is in this process",
    )
    threads: int = Field(default=0, ge=0, description="Processor threads; 0 takes all cores")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then the file."""
        return init_settings, env_settings, InitSettingsSource(settings_cls, _kept())

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(values)
        except ValidationError as error:
            raise BadSettings("; ".join(_in_words(**one) for one in error.errors())) from error


def _in_words(*, loc: tuple[int | str, ...], msg: str, **_: Any) -> str:
    """What is wrong with one setting, and where the person wrote it."""
    name = str(loc[0])
    variable = f"GISTREE_{name.upper()}"
    if name not in Settings.model_fields:
        near = get_close_matches(name, Settings.model_fields, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        where = f"the settings file {settings_file()}" if name in _kept() else "Settings"
        return f"{where}: no setting is named {name!r}; {hint}known: " + ", ".join(
            Settings.model_fields
        )
    if variable in {key.upper() for key in os.environ}:
        return f"{variable}={os.environ.get(variable, '')!r} cannot be used: {msg}"
    where = f" in {settings_file()}" if name in _kept() else ""
    return f"the setting {name!r}{where} cannot be used: {msg}"


def _kept() -> dict[str, Any]:
    """What the settings file says; nothing where there is none."""
    file = settings_file()
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadSettings(f"the settings file {file} cannot be read: {error}") from error


def save(**changes: str) -> Path:
    """Changes values in the settings file and returns it.

    Raises:
        BadSettings: the file cannot be read or written.
    """
    import tomli_w

    file = settings_file()
    kept = _kept() | changes
    new = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(tomli_w.dumps(kept), encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise BadSettings(f"the settings file {file} cannot be written: {error}") from error
    return file
