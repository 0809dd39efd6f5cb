"""Settings: the only place that reads the environment or a file of settings."""

from pathlib import Path

import platformdirs
from pydantic import Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)


def settings_file() -> Path:
    """Where settings are kept between runs."""
    return platformdirs.user_config_path("gistree") / "settings.toml"


class Settings(BaseSettings):
    """What the person chose. Each has an environment variable: GISTREE_ and the name in capitals.

    The environment wins over the settings file. An unknown name in the file is an error.
    """

    model_config = SettingsConfigDict(env_prefix="GISTREE_", extra="forbid")

    library: str = Field(
        default_factory=lambda: str(platformdirs.user_data_path("gistree") / "library"),
        description="Folder or database URL of the library",
    )
    models: Path = Field(
        default_factory=lambda: platformdirs.user_cache_path("gistree") / "models",
        description="Folder of the model cache",
    )
    model: str = Field(
        default="auto",
        description="Language model: 'auto', a name of the catalogue, a .gguf file, "
        "or the URL of an OpenAI-compatible server, with #name where it has several",
    )
    api_key: str = Field(default="", description="Key for that server")
    embedder: str = Field(
        default="minilm-l6-v2-int8",
        description="Embedder: a name of the catalogue, or a sentence-transformers name or path",
    )
    reader: str = Field(default="oprag", description="Reader where none is asked for")
    pruner: str = Field(default="evidence", description="Pruner, or 'none'")
    budget_tokens: int = Field(
        default=0, ge=0, description="Tokens of document text in a prompt; 0 suits the model"
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
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_file())


def save(**changes: str) -> Path:
    """Changes values in the settings file and returns it."""
    import tomllib

    import tomli_w

    file = settings_file()
    kept = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kept.update(changes)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(tomli_w.dumps(kept), encoding="utf-8")
    new.replace(file)
    return file
