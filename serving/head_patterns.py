"""Which pattern each head's prefill attention follows, measured once and kept in a file.

{"model": "smollm2-135m", "budget": 1024, "layers": [[
  {"pattern": "vertical_slash", "vertical": 0.5, "share": 0.97}, …one a KV head…], …]}
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from serving.errors import BadOption


@dataclass(frozen=True, slots=True)
class HeadPattern:
    """What one KV head reads of the tokens before a segment.

    Attributes:
        pattern: "a_shape" reads the beginning and the newest tokens; "vertical_slash" reads the
            columns and the diagonals that have most attention; "dense" reads everything.
        vertical: Of vertical_slash the columns' part of the budget, 0 to 1; the rest is diagonals.
        share: Of the attention that was measured to lie within what is read, 0 to 1.
    """

    pattern: Literal["a_shape", "vertical_slash", "dense"]
    vertical: float = 0.5
    share: float | None = None


@dataclass(frozen=True, slots=True)
class HeadPatterns:
    """The patterns of a model.

    Attributes:
        model: Its name, for people.
        budget: Tokens that a head read when the patterns were measured.
        layers: One tuple a layer, in it one pattern a KV head.
    """

    model: str
    budget: int
    layers: tuple[tuple[HeadPattern, ...], ...]


@cache
def load_patterns(path: Path) -> HeadPatterns:
    """The patterns in a file that ``python -m serving.calibrate`` wrote.

    Raises:
        BadOption: there is no such file, or it is not of that form.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadOption(
            f"the head patterns {path} cannot be read ({error.strerror}); "
            "python -m serving.calibrate MODEL DOCUMENT --out FILE makes such a file"
        ) from error
    try:
        return TypeAdapter(HeadPatterns).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadOption(f"{path} holds no head patterns: {where}: {first['msg']}") from error


def save_patterns(patterns: HeadPatterns, path: Path) -> None:
    """Writes the file, one line a head."""
    from pydantic import TypeAdapter

    path.write_bytes(TypeAdapter(HeadPatterns).dump_json(patterns, indent=1) + b"\n")
