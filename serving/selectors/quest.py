"""Quest (arXiv:2406.10774): the blocks that the bounds of their keys say matter most."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from serving.seen_keys import SeenKeys
from serving.selection import Selection, blocks_of, estimated_shares, top_blocks

__all__ = ["Quest"]


@dataclass(frozen=True, slots=True)
class Quest:
    """Ranks blocks by the attention that their keys' bounds let expect.

    The paper bounds pages of 16 tokens and ranks them by what one query head could score at most.
    Here a block has bounds of each of its parts, and the query heads that share a KV head are heard
    alike: the mean of the shares that each seems to give a block.

    Attributes:
        budget: Tokens that each KV head reads.
        newest: Tokens at the end that are read always.
        part: Tokens of a block that are bounded together; fewer tell more and cost more.
        tightness: Where between the middle of the bounds (0) and the most that is possible (1) a
            part is taken to score.
        reuse: Steps for which a selection is kept (Recycled Attention, arXiv:2411.05787).
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    newest: int = 64
    part: int = 8
    tightness: float = 0.5
    reuse: int = 4

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """The blocks of the highest shares."""
        shares = estimated_shares(q, keys, tightness=self.tightness)
        return top_blocks(
            shares,
            keys.num_blocks,
            most=blocks_of(self.budget, keys.block_size),
            newest=blocks_of(self.newest, keys.block_size),
        )
