"""Twilight (arXiv:2502.02770): as many blocks as hold a share of the attention, no fixed number."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from serving.seen_keys import SeenKeys
from serving.selection import Selection, blocks_of, estimated_shares, top_share

__all__ = ["Twilight"]


@dataclass(frozen=True, slots=True)
class Twilight:
    """Keeps blocks, the likeliest first, until their estimated attention reaches ``top_p``.

    A part's attention is estimated from a key between the middle of its bounds and their upper
    bound; heads whose attention is spread out read more blocks than heads that look at one place.

    Attributes:
        top_p: Share of the estimated attention that is read, 0 to 1.
        budget: Tokens that each KV head reads at most.
        newest: Tokens at the end that are read always.
        part: Tokens of a block that are bounded together.
        tightness: Where between the middle (0) and the upper bound (1) a part's score lies.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    top_p: float = 0.95
    budget: int = 4_096
    newest: int = 64
    part: int = 8
    tightness: float = 0.5
    reuse: int = 4

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """The smallest set of blocks with that share; of a group's heads the mean counts.

        Raises:
            ValueError: top_p is not between 0 and 1.
        """
        shares = estimated_shares(q, keys, tightness=self.tightness)
        return top_share(
            shares,
            keys.num_blocks,
            share=self.top_p,
            most=blocks_of(self.budget, keys.block_size),
            newest=blocks_of(self.newest, keys.block_size),
        )
