"""The seam of sparse attention: which KV blocks does a query read.

With a paged KV cache, reading fewer tokens is handing the kernel a shorter block table. A selector
sees what is known of each block (the bounds of its keys) and the queries, and names blocks. It is
pure torch and knows nothing of vLLM.

Whatever a selector says, the first block and the newest ones are read: attention rests on the
first tokens (StreamingLLM, arXiv:2309.17453), and a token must see its neighbours.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from serving.seen_keys import SeenKeys


@dataclass(frozen=True, slots=True)
class Selection:
    """KV blocks that each KV head reads, by their place in the sequence.

    Attributes:
        blocks: Ascending, then padding of any value, int64 [num_rows, num_kv_heads, most].
        counts: How many of them count, int64 [num_rows, num_kv_heads], at least 1.
    """

    blocks: Tensor
    counts: Tensor


class DecodeSelector(Protocol):
    """Selects blocks for the one new token of each sequence."""

    phase: ClassVar[Literal["decode"]]
    budget: int
    reuse: int

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """Blocks that each head reads, the first and the newest among them.

        Args:
            q: Queries times the softmax scale, float32 [num_requests, num_kv_heads, group_size,
                head_dim].
            keys: What is known of the keys of each sequence.
        """
        ...


class PrefillSelector(Protocol):
    """Selects blocks of what came before, for each segment of a long prompt."""

    phase: ClassVar[Literal["prefill"]]
    budget: int
    segment: int
    samples: int

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """Blocks that each segment reads before its own.

        Args:
            q: Some queries of each segment times the softmax scale, float32 [num_segments,
                num_samples, num_kv_heads, group_size, head_dim].
            key_min: As for ``DecodeSelector``, without the first dimension: one sequence.
            key_max: Same shape.
            num_blocks: Blocks before each segment, int64 [num_segments], at least 1.
            block_size: Tokens of a block.
        """
        ...


@runtime_checkable
class PerLayer(Protocol):
    """A selector that is another one in each layer of a model."""

    def for_layer(self, layer: int, num_kv_heads: int) -> PrefillSelector | None:
        """The selector of a layer; None: its attention is to stay dense."""
        ...


def layer_number(layer_name: str) -> int:
    """A layer's number out of its name, such as "model.layers.7.self_attn.attn"."""
    return next((int(part) for part in layer_name.split(".") if part.isdigit()), 0)


def upper_bound(q: Tensor, key_min: Tensor, key_max: Tensor) -> Tensor:
    """The most that a query can score on any key of a block (Quest, arXiv:2406.10774).

    Args:
        q: [rows, num_kv_heads, queries, head_dim].
        key_min: [rows or 1, blocks, num_kv_heads, head_dim].
        key_max: Same shape.

    Returns:
        [rows, num_kv_heads, queries, blocks].
    """
    high, low = key_max.transpose(1, 2), key_min.transpose(1, 2)
    return q.clamp(min=0) @ high.transpose(2, 3) + q.clamp(max=0) @ low.transpose(2, 3)


def as_one_head(q: Tensor) -> Tensor:
    """Queries as those of one KV head whose keys are those of all heads side by side.

    Each is put where its own head's keys are, with zeros elsewhere, so that it scores as before;
    and what a selector takes over a group of query heads, it takes over all of them.

    Args:
        q: [..., num_kv_heads, group_size, head_dim].

    Returns:
        [..., 1, num_kv_heads * group_size, num_kv_heads * head_dim].
    """
    *before, heads, group, dim = q.shape
    wide = q.new_zeros(*before, heads, group, heads, dim)
    each = torch.arange(heads, device=q.device)
    wide[..., each, :, each, :] = q.movedim(-3, 0)
    return wide.reshape(*before, 1, heads * group, heads * dim)


def estimated_shares(q: Tensor, keys: SeenKeys, *, tightness: float) -> Tensor:
    """The share of the attention that each block seems to have, of a group's heads the mean.

    Args:
        q: As for ``DecodeSelector``.
        keys: Likewise; a part of a block counts as one key.
        tightness: Where between the middle of its bounds (0) and the most that is possible (1) it
            scores.

    Returns:
        float32 [num_requests, num_kv_heads, max_blocks]; 0 past a sequence's end.
    """
    shares = keys.scores(q, tightness).softmax(-1).mean(2)
    return shares.unflatten(-1, (-1, keys.parts)).sum(-1)


def always(num_blocks: Tensor, most: int, *, first: int, newest: int) -> Tensor:
    """Which blocks are read whatever their scores, bool [num_rows, 1, most]."""
    place = torch.arange(most, device=num_blocks.device)
    ends = num_blocks.view(-1, 1, 1)
    return ((place < first) | (place >= ends - newest)) & (place < ends)


def top_blocks(
    scores: Tensor, num_blocks: Tensor, *, most: int, first: int = 1, newest: int = 1
) -> Selection:
    """The blocks with the highest scores, the first and the newest among them.

    Args:
        scores: float32 [num_rows, num_kv_heads, max_blocks].
        num_blocks: Blocks of each row, int64 [num_rows].
        most: Blocks of each head at most; first and newest count.
        first: Blocks at the beginning that are read always.
        newest: Blocks at the end likewise.

    Raises:
        ValueError: most is too small for the first and the newest.
    """
    if most < first + newest:
        raise ValueError(f"{most} blocks cannot hold the first {first} and the newest {newest}")
    width = scores.shape[-1]
    place = torch.arange(width, device=scores.device)
    past = place >= num_blocks.view(-1, 1, 1)
    kept = always(num_blocks, width, first=first, newest=newest)
    scores = scores.masked_fill(kept, torch.inf).masked_fill(past, -torch.inf)
    best = scores.topk(min(most, width), dim=-1).indices
    counts = num_blocks.clamp(max=best.shape[-1]).view(-1, 1).expand(scores.shape[:2])
    return Selection(_ascending(best, counts, width), counts)


def top_share(
    shares: Tensor, num_blocks: Tensor, *, share: float, most: int, first: int = 1, newest: int = 1
) -> Selection:
    """The fewest blocks that have a share of the attention, the first and the newest among them.

    Args:
        shares: Of the attention, float32 [num_rows, num_kv_heads, max_blocks]; 0 past the end.
        num_blocks: Blocks of each row, int64 [num_rows].
        share: What they must have together, 0 to 1.
        most: Blocks of each head at most; first and newest count.
        first: Blocks at the beginning that are read always.
        newest: Blocks at the end likewise.

    Raises:
        ValueError: the share is not between 0 and 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share is {share}; it must be above 0 and at most 1")
    width = shares.shape[-1]
    kept = always(num_blocks, width, first=first, newest=newest).expand_as(shares)
    order = (shares + 2.0 * kept).argsort(-1, descending=True)  # what is kept comes first
    ranked = shares.gather(-1, order)
    taken = ((ranked.cumsum(-1) - ranked < share) & (ranked > 0)) | kept.gather(-1, order)
    taken &= torch.arange(width, device=shares.device) < most
    return chosen_blocks(torch.zeros_like(taken).scatter(-1, order, taken))


def chosen_blocks(chosen: Tensor) -> Selection:
    """The blocks of a mask.

    Args:
        chosen: bool [num_rows, num_kv_heads, max_blocks]; some of each row.
    """
    counts = chosen.sum(-1)
    width = chosen.shape[-1]
    place = torch.arange(width, device=chosen.device).expand_as(chosen)
    ordered = place.masked_fill(~chosen, width).sort(-1).values[..., : int(counts.max())]
    return Selection(ordered.clamp(max=width - 1), counts)


def _ascending(blocks: Tensor, counts: Tensor, width: int) -> Tensor:
    """Blocks in order; what is past a row's count goes to the end."""
    rank = torch.arange(blocks.shape[-1], device=blocks.device)
    padded = blocks.masked_fill(rank >= counts.unsqueeze(-1), width)
    return padded.sort(-1).values.clamp(max=width - 1)


def blocks_of(tokens: int, block_size: int) -> int:
    """Blocks that hold so many tokens."""
    return -(-tokens // block_size)
