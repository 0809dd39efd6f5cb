"""CritiPrefill (arXiv:2409.12490): each segment of a prompt reads the blocks that matter to it."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from serving.selection import Selection, blocks_of, top_blocks, upper_bound

__all__ = ["CritiPrefill"]


@dataclass(frozen=True, slots=True)
class CritiPrefill:
    """Ranks blocks by the attention that some queries of a segment could give them.

    Attributes:
        budget: Tokens before a segment that each KV head reads.
        segment: Tokens of a segment; its own are read always.
        samples: Queries of a segment that are looked at.
    """

    phase: ClassVar[Literal["prefill"]] = "prefill"
    budget: int = 1_024
    segment: int = 512
    samples: int = 16

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """The blocks with the highest sum of estimated attention over the queries."""
        return top_blocks(
            attention(q, key_min, key_max, num_blocks).sum(2),
            num_blocks,
            most=blocks_of(self.budget, block_size),
        )


def attention(q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor) -> Tensor:
    """Estimated share of each query's attention that each block gets.

    Args:
        q: [num_segments, num_samples, num_kv_heads, group_size, head_dim].
        key_min: [max_blocks, num_kv_heads, head_dim].
        key_max: Same shape.
        num_blocks: Blocks before each segment, [num_segments].

    Returns:
        [num_segments, num_kv_heads, num_samples * group_size, max_blocks].
    """
    rows = q.transpose(1, 2).flatten(2, 3)
    bounds = upper_bound(rows, key_min.unsqueeze(0), key_max.unsqueeze(0))
    place = torch.arange(bounds.shape[-1], device=q.device)
    past = place >= num_blocks.view(-1, 1, 1, 1)
    return bounds.masked_fill(past, -torch.inf).softmax(-1)
