"""What shaped a batch's answers, kept beside them: the same command goes on, another one asks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.batch.errors import BatchChanged
from app.batch.journal import write_whole

_SHOWN = 60  # characters of a value in a message


def beside(out: Path) -> Path:
    """Where they are kept."""
    return out.with_name(f"{out.name}.settings.json")


def agree(out: Path, settings: Mapping[str, Any], *, finished: int) -> None:
    """Keeps the settings of a new batch; of an old one they must be the same.

    Args:
        out: The output.
        settings: What shapes an answer, by name.
        finished: Rows that are there already.

    Raises:
        BatchChanged: they differ, and rows were made with the others.
    """
    file = beside(out)
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if known is not None and finished:
        changed = [
            f"{name} was {_shown(known.get(name))} and is {_shown(value)}"
            for name, value in settings.items()
            if known.get(name) != value
        ]
        if changed:
            raise BatchChanged(
                f"{finished:,} rows of {out} were made with other settings: {'; '.join(changed)}. "
                "Use --redo to ask them again, or another output"
            )
    if known != settings:
        write_whole(file, iter([json.dumps(settings, indent=1).encode()]))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
