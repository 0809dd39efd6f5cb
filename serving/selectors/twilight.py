"""Twilight (arXiv:2502.02770): as many blocks as hold a share of the attention, no fixed number."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from serving.selection import Selection, blocks_of, top_share, upper_bound

__all__ = ["Twilight"]


@dataclass(frozen=True, slots=True)
class Twilight:
    """Keeps blocks, the likeliest first, until their estimated attention reaches ``top_p``.

    A block's attention is estimated from a key between the middle of its bounds and their upper
    bound; heads whose attention is spread out read more blocks than heads that look at one place.

    Attributes:
        top_p: Share of the estimated attention that is read, 0 to 1.
        budget: Tokens that each KV head reads at most.
        newest: Tokens at the end that are read always.
        tightness: Where between the middle (0) and the upper bound (1) a block's score lies.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    top_p: float = 0.95
    budget: int = 4_096
    newest: int = 64
    tightness: float = 0.5
    reuse: int = 8

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """The smallest set of blocks with that share; of a group's heads the mean counts.

        Raises:
            ValueError: top_p is not between 0 and 1.
        """
        middle = upper_bound(q, (key_min + key_max) / 2, (key_min + key_max) / 2)
        bound = upper_bound(q, key_min, key_max)
        scores = middle + self.tightness * (bound - middle) + math.log(block_size)
        place = torch.arange(scores.shape[-1], device=q.device)
        past = place >= num_blocks.view(-1, 1, 1, 1)
        shares = scores.masked_fill(past, -torch.inf).softmax(-1).mean(2)
        return top_share(
            shares,
            num_blocks,
            share=self.top_p,
            most=blocks_of(self.budget, block_size),
            newest=blocks_of(self.newest, block_size),
        )
