"""Sink and window (StreamingLLM, arXiv:2309.17453; LServe's streaming heads, 2502.14866)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from serving.seen_keys import SeenKeys
from serving.selection import Selection, always, blocks_of, chosen_blocks

__all__ = ["Streaming"]


@dataclass(frozen=True, slots=True)
class Streaming:
    """Reads the beginning and the newest tokens, and nothing between.

    Attributes:
        budget: Tokens that each KV head reads.
        first: Of them at the beginning.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    first: int = 64
    reuse: int = 8

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """The same blocks for all heads.

        Raises:
            ValueError: the budget is used up by the beginning.
        """
        first = blocks_of(self.first, keys.block_size)
        newest = blocks_of(self.budget, keys.block_size) - first
        if newest < 1:
            raise ValueError(f"a budget of {self.budget} tokens leaves nothing after {self.first}")
        kept = always(keys.num_blocks, keys.blocks.shape[1], first=first, newest=newest)
        return chosen_blocks(kept.expand(-1, q.shape[1], -1))
