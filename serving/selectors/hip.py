"""Hierarchical search over blocks (HiP attention, arXiv:2406.09827): few are looked at closely."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from serving.seen_keys import SeenKeys
from serving.selection import Selection, blocks_of, top_blocks

__all__ = ["Hip"]


@dataclass(frozen=True, slots=True)
class Hip:
    """Ranks blocks by the bounds of all their keys, and the best of them again, part by part.

    What it ranks by is what Quest ranks by; long sequences cost a share of it.

    Attributes:
        budget: Tokens that each KV head reads.
        beam: Blocks that are looked into, as a multiple of those that the budget holds.
        newest: Tokens at the end that are read always.
        part: Tokens of a block that are bounded together; fewer tell more and cost more.
        tightness: Where between the middle of the bounds (0) and the most that is possible (1) a
            part is taken to score.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    beam: float = 4.0
    newest: int = 64
    part: int = 8
    tightness: float = 0.5
    reuse: int = 4

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """The best parts' blocks of the best blocks.

        Raises:
            ValueError: the beam is narrower than the budget.
        """
        if self.beam < 1:
            raise ValueError(f"the beam is {self.beam}; it must be at least 1")
        most = blocks_of(self.budget, keys.block_size)
        width = keys.blocks.shape[1]
        coarse = keys.whole.scores(q, self.tightness).softmax(-1).mean(2)
        best = coarse.topk(min(round(self.beam * most), width), dim=-1).indices
        fine = keys.scores(q, self.tightness, among=best).softmax(-1).mean(2)
        shares = fine.unflatten(-1, (-1, keys.parts)).sum(-1)
        return top_blocks(
            torch.zeros_like(coarse).scatter_(-1, best, shares),
            keys.num_blocks,
            most=most,
            newest=blocks_of(self.newest, keys.block_size),
        )
