"""The command line as a person meets it: a process of its own, in a home of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from serving.catalogue import card

EMBEDDER = "minilm-l6-v2-int8"


def model_cache() -> Path:
    """The real model cache, which must hold the default embedder."""
    models = Path(
        os.environ.get("GISTREE_MODELS") or platformdirs.user_cache_path("gistree") / "models"
    )
    if not card(EMBEDDER).is_in(models):
        pytest.skip(f"{EMBEDDER} is not in {models}: gistree models fetch {EMBEDDER}")
    return models


@dataclass
class Said:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Door:
    """Runs ``gistree`` with folders and settings of its own; ``env`` adds to its environment."""

    home: Path
    models: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def library(self) -> Path:
        return self.home / "library"

    @property
    def settings(self) -> Path:
        return self.home / "config" / "gistree" / "settings.toml"

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GISTREE_")}
        return kept | {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "GISTREE_LIBRARY": str(self.library),
            "GISTREE_MODELS": str(self.models),
            "GISTREE_THREADS": "2",
            "COLUMNS": "400",
            **self.env,
        }

    def start(self, *args: str | bytes | Path, **options: Any) -> subprocess.Popen[bytes]:
        """A command at work, with pipes."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", *args],
            env=self.environment() | options.pop("env", {}),
            cwd=Path(__file__).parents[2],
            **options,
        )

    def __call__(self, *args: str | bytes | Path, said: str = "", **options: Any) -> Said:
        """A command that has ended.

        Args:
            args: After ``gistree``.
            said: What the person types in.
            options: Of ``subprocess.Popen``; ``env`` adds to the environment.
        """
        process = self.start(*args, stdin=subprocess.PIPE, **options)
        out, err = process.communicate(said.encode(), timeout=120)
        shown = Said(process.returncode, out.decode(), err.decode())
        assert "Traceback" not in shown.err, shown.err
        return shown
