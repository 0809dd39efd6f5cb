"""What is known of each KV block: the bounds of its keys, kept up as keys are written."""

import torch
from torch import Tensor


class Room:
    """Memory for the bounds that one layer after the other looks at in a step of the engine.

    Fresh memory for each layer costs more than filling it.
    """

    def __init__(self) -> None:
        """Empty; it grows as is asked."""
        self._kept: dict[tuple[int, ...], Tensor] = {}

    def of(self, *shape: int) -> Tensor:
        """float32 of that shape, of any content, the same memory each time."""
        if shape not in self._kept:
            self._kept[shape] = torch.empty(shape)
        return self._kept[shape]


class BlockBounds:
    """Elementwise minima and maxima of the keys in each block of one layer.

    They are kept by *physical* block and begin anew when a block's first slot is written. So what
    the engine does with its blocks (sharing a prefix, preemption, giving a block to another
    sequence) needs nothing more here.

    Attributes:
        key_min: float32 [num_blocks, num_kv_heads, head_dim].
        key_max: Same shape.
    """

    def __init__(self, num_blocks: int, num_kv_heads: int, head_dim: int) -> None:
        self.key_min = torch.zeros(num_blocks, num_kv_heads, head_dim)
        self.key_max = torch.zeros(num_blocks, num_kv_heads, head_dim)

    def write(self, keys: Tensor, slots: Tensor, block_size: int) -> None:
        """Takes in keys as they are written.

        Args:
            keys: [num_tokens, num_kv_heads, head_dim], of any float type.
            slots: Where each goes: physical block times block size plus place in it, int64
                [num_tokens]; below 0 is padding.
            block_size: Tokens of a block.
        """
        keys = keys.float()
        if bool((slots < 0).any()):
            keys, slots = keys[slots >= 0], slots[slots >= 0]
        blocks = slots // block_size
        places = slots - blocks * block_size
        if len(keys) < block_size and len(set(blocks.tolist())) == len(keys):
            self._one_each(keys, blocks, first=(places == 0).view(-1, 1, 1))
            return
        begun = blocks[places == 0]
        self.key_min[begun], self.key_max[begun] = torch.inf, -torch.inf
        whole = _whole(slots, block_size)
        if whole:
            parts = keys[:whole].unflatten(0, (-1, block_size))
            self.key_min[blocks[:whole:block_size]] = parts.amin(1)
            self.key_max[blocks[:whole:block_size]] = parts.amax(1)
        rest = blocks[whole:].view(-1, 1, 1).expand_as(keys[whole:])
        self.key_min.scatter_reduce_(0, rest, keys[whole:], "amin")
        self.key_max.scatter_reduce_(0, rest, keys[whole:], "amax")

    def of(self, blocks: Tensor, room: Room) -> tuple[Tensor, Tensor]:
        """The bounds of some blocks, until the next time that the room is used.

        In memory each head's lie together: so scoring them is one matrix product a head, and not a
        copy first (thirty times slower at 32,768 tokens).

        Args:
            blocks: Physical blocks, int64 [..., num_blocks].
            room: Where they are laid out.

        Returns:
            Minima and maxima, float32 [..., num_blocks, num_kv_heads, head_dim].
        """
        _, heads, dim = self.key_min.shape
        flat = (blocks * heads).unsqueeze(-2) + torch.arange(heads).unsqueeze(-1)
        laid = room.of(2, flat.numel(), dim)
        for bounds, out in zip((self.key_min, self.key_max), laid, strict=True):
            torch.index_select(bounds.view(-1, dim), 0, flat.flatten(), out=out)
        low, high = laid.view(2, *flat.shape, dim).transpose(-3, -2)
        return low, high

    def _one_each(self, keys: Tensor, blocks: Tensor, *, first: Tensor) -> None:
        """One key a block, as while decoding: no scattering."""
        for bounds, of in ((self.key_min, torch.minimum), (self.key_max, torch.maximum)):
            bounds[blocks] = torch.where(first, keys, of(bounds[blocks], keys))


def _whole(slots: Tensor, block_size: int) -> int:
    """How many tokens at the beginning fill whole blocks, one block after the other."""
    most = len(slots) // block_size * block_size
    if not most:
        return 0
    lines = slots[:most].view(-1, block_size)
    straight = (lines == lines[:, :1] + torch.arange(block_size)).all(1)
    good = straight & (lines[:, 0] % block_size == 0)
    ends = (~good).nonzero()
    return int(ends[0]) * block_size if len(ends) else most
