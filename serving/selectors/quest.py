"""Quest (arXiv:2406.10774): the blocks in which some key could score highest."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from serving.selection import Selection, blocks_of, top_blocks, upper_bound

__all__ = ["Quest"]


@dataclass(frozen=True, slots=True)
class Quest:
    """Ranks blocks by the upper bound that their keys' bounds put on any score.

    Attributes:
        budget: Tokens that each KV head reads.
        newest: Tokens at the end that are read always.
        reuse: Steps for which a selection is kept (Recycled Attention, arXiv:2411.05787).
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    newest: int = 64
    reuse: int = 8

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """The blocks of the highest bounds; of the heads of a group the highest counts."""
        bounds = upper_bound(q, key_min, key_max).amax(2)
        return top_blocks(
            bounds,
            num_blocks,
            most=blocks_of(self.budget, block_size),
            newest=blocks_of(self.newest, block_size),
        )
