"""What a decode selector sees of the keys of some sequences, and how it scores them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds, Room
from serving.bound_loops import scoring


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """The bounds of the keys of some sequences.

    Attributes:
        bounds: Of the layer, by physical block.
        blocks: Physical blocks of each sequence, integers [num_requests, max_blocks]; past its end
            of any value within the cache.
        seq_lens: Tokens of each sequence, int64 [num_requests].
        block_size: Tokens of a block.
        room: Where bounds are laid out.
    """

    bounds: BlockBounds
    blocks: Tensor
    seq_lens: Tensor
    block_size: int
    room: Room = field(default_factory=Room)

    @property
    def num_blocks(self) -> Tensor:
        """Blocks of each sequence, int64 [num_requests]."""
        return -(-self.seq_lens // self.block_size)

    @property
    def parts(self) -> int:
        """Parts of a block, each of which has bounds of its own."""
        return self.block_size // self.bounds.part

    def past(self) -> Tensor:
        """Which parts lie past a sequence's end, bool [num_requests, max_blocks * parts]."""
        device = self.seq_lens.device
        starts = torch.arange(self.blocks.shape[1] * self.parts, device=device) * self.bounds.part
        return starts >= self.seq_lens.view(-1, 1)

    def laid_out(self) -> tuple[Tensor, Tensor]:
        """Minima and maxima of all parts in order, until the room is used again.

        Returns:
            float32 [num_requests, max_blocks * parts, num_kv_heads, head_dim] each; past a
            sequence's end of any value, infinity among them.
        """
        return self.bounds.of(self.blocks.long(), self.room)

    def scores(self, q: Tensor, tightness: float = 1.0) -> Tensor:
        """What a query would score on a key of each part.

        Args:
            q: float32 [num_requests, num_kv_heads, group_size, head_dim].
            tightness: Where between the middle of a part's bounds (0) and the most that a key
                within them can score (1; Quest, arXiv:2406.10774) the key lies.

        Returns:
            float32 [num_requests, num_kv_heads, group_size, max_blocks * parts], minus infinity
            past a sequence's end.
        """
        more, less = (1 + tightness) / 2, (1 - tightness) / 2
        up, down = q.clamp(min=0), q.clamp(max=0)
        high, low = more * up + less * down, more * down + less * up
        if not self.bounds.compiled:
            key_min, key_max = self.laid_out()
            found = high @ key_max.transpose(1, 2).mT + low @ key_min.transpose(1, 2).mT
            return found.masked_fill(self.past()[:, None, None], -torch.inf)
        width = self.blocks.shape[1] * self.parts
        found = torch.full((*q.shape[:-1], width), -torch.inf)
        scoring()(
            *(each.numpy() for each in (high, low, self.bounds.key_max, self.bounds.key_min)),
            *(each.numpy() for each in (self.blocks.int().contiguous(), self.seq_lens, found)),
            self.bounds.part,
        )
        return found
