"""SampleAttention (arXiv:2406.15486): sampled queries say how much of the past a head needs."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from serving.selection import Selection, blocks_of, top_share
from serving.selectors.critiprefill import attention

__all__ = ["Sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Keeps blocks until the sampled queries' estimated attention to them reaches a share.

    Attributes:
        share: Of the estimated attention, 0 to 1.
        budget: Tokens before a segment that each KV head reads at most.
        segment: Tokens of a segment; its own are read always.
        samples: Queries of a segment that are looked at.
    """

    phase: ClassVar[Literal["prefill"]] = "prefill"
    share: float = 0.95
    budget: int = 4_096
    segment: int = 512
    samples: int = 16

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """The smallest set of blocks with that share of the mean attention.

        Raises:
            ValueError: the share is not between 0 and 1.
        """
        return top_share(
            attention(q, key_min, key_max, num_blocks).mean(2),
            num_blocks,
            share=self.share,
            most=blocks_of(self.budget, block_size),
        )
