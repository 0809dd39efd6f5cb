"""What a model can be trusted with, by its size, where nobody has said."""

import re
from pathlib import Path

from serving.model import Ability

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_TINY_MOST, _SMALL_MOST = 0.8e9, 6e9
_BYTES_A_PARAMETER = 2  # weights are published in 16 bits


def ability_of(model: str) -> Ability:
    """By the number of parameters that a model's name gives, or the weights in its folder have.

    >>> ability_of("Qwen/Qwen3-4B-Instruct"), ability_of("smollm2-135m"), ability_of("gpt-4o")
    ('small', 'tiny', 'large')

    Args:
        model: A name, a repository on the hub, or a folder with weights.
    """
    folder = Path(model)
    size = _SIZE.search(folder.name)
    if size:
        return _by_size(float(size[1]) * {"b": 1e9, "m": 1e6}[size[2].lower()])
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return _by_size(weights / _BYTES_A_PARAMETER) if weights else "large"


def _by_size(parameters: float) -> Ability:
    if parameters <= _TINY_MOST:
        return "tiny"
    return "small" if parameters <= _SMALL_MOST else "large"
