"""What is known of each KV block: the bounds of its keys, kept up as keys are written."""

import math

import torch
from torch import Tensor

from serving.bound_loops import COMPILED, taking_in


class Room:
    """Memory for the bounds that one layer after the other looks at, step after step.

    Fresh memory for each costs several times what is done with it.
    """

    def __init__(self) -> None:
        """Empty; it grows as is asked."""
        self._kept = torch.empty(0)

    def of(self, *shape: int) -> Tensor:
        """float32 of that shape, of any content, in the same memory each time."""
        size = math.prod(shape)
        if len(self._kept) < size:
            self._kept = torch.empty(size)
        return self._kept[:size].view(shape)


class BlockBounds:
    """Elementwise minima and maxima of the keys in each part of each block of one layer.

    A block is bounded in several parts, as what holds for 16 keys says much more of them than what
    holds for 128. They are kept by *physical* block and begin anew when its first slot is written.
    So what the engine does with its blocks (sharing a prefix, preemption, giving a block to another
    sequence) needs nothing more here.

    Attributes:
        part: Tokens of a part; it divides the block size.
        key_min: float32 [num_blocks, num_kv_heads, parts of a block, head_dim]; infinity where
            nothing was written since the block began.
        key_max: Same shape, minus infinity.
        whole: The bounds of whole blocks, kept likewise.
        compiled: Whether compiled loops fill and read them where they are.
    """

    def __init__(
        self, num_blocks: int, num_kv_heads: int, head_dim: int, *, block_size: int, part: int
    ) -> None:
        """No keys yet.

        Args:
            num_blocks: Of the whole cache.
            num_kv_heads: Of this process.
            head_dim: Of keys.
            block_size: Tokens of a block.
            part: Tokens of a part, at most; the largest that divides the block size is taken.
        """
        self.part = math.gcd(block_size, part)
        self._parts = block_size // self.part
        shape = (num_blocks, num_kv_heads, self._parts, head_dim)
        self.key_min, self.key_max = torch.zeros(shape), torch.zeros(shape)
        self.compiled = COMPILED and self.key_min.device.type == "cpu"
        self.whole = self
        if self._parts > 1:
            self.whole = BlockBounds(
                num_blocks, num_kv_heads, head_dim, block_size=block_size, part=block_size
            )

    @property
    def num_kv_heads(self) -> int:
        """Heads whose keys are bounded by themselves."""
        return int(self.key_min.shape[1])

    def write(self, keys: Tensor, slots: Tensor) -> None:
        """Takes in keys as they are written.

        Args:
            keys: [num_tokens, num_kv_heads, head_dim], of any float type.
            slots: Where each goes: physical block times block size plus place in it, int64
                [num_tokens]; below 0 is padding.
        """
        keys = keys.float()
        if self.whole is not self:
            self.whole.write(keys, slots)
        if self.compiled:
            bounds = self.key_min.numpy(), self.key_max.numpy()
            taking_in()(keys.numpy(), slots.numpy(), *bounds, self.part)
        else:
            self._in_torch(keys, slots)

    def of(self, blocks: Tensor, room: Room) -> tuple[Tensor, Tensor]:
        """The bounds of the parts of some blocks, until the next time that the room is used.

        In memory each head's lie together: so scoring them is one matrix product a head, and not a
        copy first (thirty times slower at 32,768 tokens).

        Args:
            blocks: Physical blocks of each head, int64 [..., num_kv_heads, num_blocks].
            room: Where they are laid out.

        Returns:
            Minima and maxima, float32 [..., num_kv_heads, num_blocks * parts of a block, head_dim].
        """
        _, heads, parts, dim = self.key_min.shape
        flat = blocks * heads + torch.arange(heads).unsqueeze(-1)
        laid = room.of(2, flat.numel(), parts * dim)
        for bounds, out in zip((self.key_min, self.key_max), laid, strict=True):
            torch.index_select(bounds.view(-1, parts * dim), 0, flat.flatten(), out=out)
        low, high = laid.view(2, *flat.shape[:-1], flat.shape[-1] * parts, dim)
        return low, high

    def _in_torch(self, keys: Tensor, slots: Tensor) -> None:
        """Takes in keys without a compiled loop."""
        if bool((slots < 0).any()):
            keys, slots = keys[slots >= 0], slots[slots >= 0]
        parts = slots // self.part
        blocks = parts // self._parts
        places = parts - blocks * self._parts
        begun = blocks[slots % (self.part * self._parts) == 0]
        if len(begun):
            self.key_min[begun], self.key_max[begun] = torch.inf, -torch.inf
        if len(keys) < self.part and len(set(parts.tolist())) == len(keys):
            self._one_each(keys, blocks, places)
            return
        full = _full(slots, self.part)
        if full:
            filled = keys[:full].unflatten(0, (-1, self.part))
            at = slice(0, full, self.part)
            self.key_min[blocks[at], :, places[at]] = filled.amin(1)
            self.key_max[blocks[at], :, places[at]] = filled.amax(1)
        _, heads, _, dim = self.key_min.shape
        rows = blocks[full:].unsqueeze(1) * heads + torch.arange(heads)
        rows = rows * self._parts + places[full:].unsqueeze(1)
        rest = rows.view(-1, 1).expand(-1, dim)
        self.key_min.view(-1, dim).scatter_reduce_(0, rest, keys[full:].flatten(0, 1), "amin")
        self.key_max.view(-1, dim).scatter_reduce_(0, rest, keys[full:].flatten(0, 1), "amax")

    def _one_each(self, keys: Tensor, blocks: Tensor, places: Tensor) -> None:
        """One key a part, as while decoding: no scattering."""
        for bounds, of in ((self.key_min, torch.minimum), (self.key_max, torch.maximum)):
            bounds[blocks, :, places] = of(bounds[blocks, :, places], keys)


def _full(slots: Tensor, part: int) -> int:
    """How many tokens at the beginning fill whole parts, one part after the other."""
    most = len(slots) // part * part
    if not most:
        return 0
    lines = slots[:most].view(-1, part)
    straight = (lines == lines[:, :1] + torch.arange(part)).all(1)
    good = straight & (lines[:, 0] % part == 0)
    ends = (~good).nonzero()
    return int(ends[0]) * part if len(ends) else most
