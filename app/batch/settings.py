"""What shaped a batch's answers, kept beside them: the same command goes on, another one asks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.batch.errors import BatchChanged, BatchError
from app.batch.journal import write_whole
from memory.database import explained

_SHOWN = 60  # characters of a value in a message


def beside(out: Path) -> Path:
    """Where they are kept."""
    return out.with_name(f"{out.name}.settings.json")


def differences(out: Path, settings: Mapping[str, Any]) -> list[str]:
    """In words, what has changed since the answers in an output were made.

    A setting of which an older version kept nothing counts as unchanged.
    """
    known = _known(out) or {}
    return [
        f"{name} was {_shown(known[name])} and is {_shown(value)}"
        for name, value in settings.items()
        if name in known and known[name] != value
    ]


def agree(out: Path, settings: Mapping[str, Any], *, finished: int, dry: bool = False) -> None:
    """Keeps the settings of a new batch; of an old one they must be the same.

    Args:
        out: The output.
        settings: What shapes an answer, by name.
        finished: Rows that are there already.
        dry: Keep nothing.

    Raises:
        BatchChanged: they differ, and rows were made with the others.
    """
    changed = differences(out, settings) if finished else []
    if changed:
        raise BatchChanged(
            f"{finished:,} rows of {out} were made with other settings: {'; '.join(changed)}. "
            "Use --redo to ask them again, or another output"
        )
    if not dry and _known(out) != settings:
        with explained(f"the folder of {out}"):
            write_whole(beside(out), iter([json.dumps(settings, indent=1).encode()]))


def _known(out: Path) -> dict[str, Any] | None:
    """What is kept beside an output; None where nothing is, or nothing that can be read."""
    try:
        known = json.loads(beside(out).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BatchError(
            f"{beside(out)} is damaged ({error}); with what the answers in {out} were made is not "
            "known any more: remove that file to go on with them, or choose another output"
        ) from error
    return known if isinstance(known, dict) else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
