"""Loops over the bounds of keys, compiled: where torch needs ten calls a layer, they need one.

They need numba, which vLLM brings on the platforms that we know; without it, and on a GPU, the same
is done in torch.
"""

import importlib.util
import math
from functools import cache
from typing import Any

COMPILED = importlib.util.find_spec("numba") is not None

_BOUNDS = "float32[:, :, :, ::1]"


@cache
def scoring() -> Any:
    """The compiled ``_score``; compiling takes a second, so a backend asks for it at its start."""
    asked, blocks = f"{_BOUNDS}, {_BOUNDS}, {_BOUNDS}, {_BOUNDS}", "int64[:, :, ::1]"
    return _njit(f"void({asked}, {blocks}, {blocks}, int64[::1], {_BOUNDS}, int64)", _score)


@cache
def taking_in() -> Any:
    """The compiled ``_take_in``, likewise."""
    return _njit(f"void(float32[:, :, :], int64[:], {_BOUNDS}, {_BOUNDS}, int64)", _take_in)


def _njit(signature: str, loop: Any) -> Any:
    from numba import njit

    return njit(signature, fastmath={"reassoc", "contract", "nsz"}, nogil=True)(loop)


def _score(
    high: Any,
    low: Any,
    key_max: Any,
    key_min: Any,
    blocks: Any,
    places: Any,
    seq_lens: Any,
    found: Any,
    part: int,
) -> None:
    """Products of what is asked with the bounds of all parts that begin before a sequence's end.

    Args:
        high: What maxima are multiplied with, [num_requests, num_kv_heads, group_size, head_dim].
        low: Minima likewise.
        key_max: As in ``BlockBounds``.
        key_min: Likewise.
        blocks: Physical blocks, [num_requests, num_kv_heads, num_blocks].
        places: Which blocks of the sequence they are, same shape.
        seq_lens: Tokens, [num_requests].
        found: What is filled, [num_requests, num_kv_heads, group_size, num_blocks * parts].
        part: Tokens of a part.
    """
    requests, heads, group, dim = high.shape
    parts = key_max.shape[2]
    for request in range(requests):
        count = (seq_lens[request] + part - 1) // part
        for head in range(heads):
            for rank in range(blocks.shape[2]):
                block = blocks[request, head, rank]
                known = min(parts, count - places[request, head, rank] * parts)
                for number in range(known):
                    top, bottom = key_max[block, head, number], key_min[block, head, number]
                    for query in range(group):
                        above, below = high[request, head, query], low[request, head, query]
                        total = high.dtype.type(0)
                        for i in range(dim):
                            total += top[i] * above[i] + bottom[i] * below[i]
                        found[request, head, query, rank * parts + number] = total


def _take_in(keys: Any, slots: Any, key_min: Any, key_max: Any, part: int) -> None:
    """Takes keys into the bounds of their parts, which begin anew with their block.

    Args:
        keys: [num_tokens, num_kv_heads, head_dim].
        slots: Where each goes, [num_tokens]; below 0 is padding.
        key_min: As in ``BlockBounds``.
        key_max: Likewise.
        part: Tokens of a part.
    """
    _, heads, parts, dim = key_min.shape
    for token in range(len(slots)):
        if slots[token] < 0:
            continue
        block, place = divmod(slots[token], part * parts)
        if place == 0:
            key_min[block] = math.inf
            key_max[block] = -math.inf
        for head in range(heads):
            least, most = key_min[block, head, place // part], key_max[block, head, place // part]
            for i in range(dim):
                key = keys[token, head, i]
                least[i] = min(least[i], key)
                most[i] = max(most[i], key)
