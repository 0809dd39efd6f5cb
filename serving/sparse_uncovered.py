"""Back ends of vLLM that no selector covers: vLLM's own, and a word about it when one is taken."""

from typing import Any

from vllm.utils.import_utils import resolve_obj_by_qualname
from vllm.v1.attention.backends.registry import AttentionBackendEnum

from serving.sparse_layer import say_once


def __getattr__(name: str) -> Any:
    """The back end of that name, vLLM's own; it is asked for by its path in this module."""
    member = AttentionBackendEnum.__members__.get(name)
    if member is None:
        raise AttributeError(f"vLLM has no attention back end {name}")
    say_once("attention stays dense: vLLM takes %s, which no selector covers", name)
    return resolve_obj_by_qualname(member.value)
