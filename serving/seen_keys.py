"""What a decode selector sees of the keys of some sequences, and how it scores them."""

from dataclasses import dataclass, field, replace

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
    def whole(self) -> "SeenKeys":
        """The same sequences, known by the bounds of whole blocks only."""
        return replace(self, bounds=self.bounds.whole)

    @property
    def num_blocks(self) -> Tensor:
        """Blocks of each sequence, int64 [num_requests]."""
        return -(-self.seq_lens // self.block_size)

    @property
    def part(self) -> int:
        """Tokens of a part of a block, each of which has bounds of its own."""
        return self.bounds.part

    @property
    def parts(self) -> int:
        """Parts of a block."""
        return self.block_size // self.part

    def scores(self, q: Tensor, tightness: float = 1.0, *, among: Tensor | None = None) -> Tensor:
        """What a query would score on a key of each part.

        Args:
            q: float32 [num_requests, num_kv_heads, group_size, head_dim].
            tightness: Where between the middle of a part's bounds (0) and the most that a key
                within them can score (1; Quest, arXiv:2406.10774) the key lies.
            among: The blocks in question, by their place in the sequence, int64 [num_requests,
                num_kv_heads, num_blocks]; all where not given.

        Returns:
            float32 [num_requests, num_kv_heads, group_size, num_blocks * parts], minus infinity
            past a sequence's end.
        """
        requests, heads = q.shape[:2]
        if among is None:
            among = torch.arange(self.blocks.shape[1]).expand(requests, heads, -1)
        more, less = (1 + tightness) / 2, (1 - tightness) / 2
        up, down = q.clamp(min=0), q.clamp(max=0)
        high, low = more * up + less * down, more * down + less * up
        physical = self.blocks.long().unsqueeze(1).expand(-1, heads, -1).gather(2, among)
        if self.bounds.compiled:
            found = torch.full((*q.shape[:-1], among.shape[-1] * self.parts), -torch.inf)
            tensors = (high, low, self.bounds.key_max, self.bounds.key_min, physical)
            places = among.contiguous()
            scoring()(
                *(each.numpy() for each in (*tensors, places, self.seq_lens, found)), self.part
            )
            return found
        key_min, key_max = self.bounds.of(physical, self.room)
        found = high @ key_max.mT + low @ key_min.mT
        starts = among.unsqueeze(-1) * self.block_size + torch.arange(self.parts) * self.part
        past = starts.flatten(2) >= self.seq_lens.view(-1, 1, 1)
        return found.masked_fill(past.unsqueeze(2), -torch.inf)
