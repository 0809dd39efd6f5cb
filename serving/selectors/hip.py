"""Hierarchical search over blocks (HiP attention, arXiv:2406.09827): few are looked at closely."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from serving.selection import Selection, blocks_of, top_blocks, upper_bound

__all__ = ["Hip"]


@dataclass(frozen=True, slots=True)
class Hip:
    """Looks at groups of blocks first, and only into the best groups.

    The bounds of a group are the bounds of its blocks together, so no block of a group can score
    above the group. Scoring costs a share of Quest's that shrinks with ``branch``.

    Attributes:
        budget: Tokens that each KV head reads.
        branch: Blocks of a group.
        beam: Groups that are looked into, as a multiple of those that the budget would fill.
        newest: Tokens at the end that are read always.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    branch: int = 8
    beam: float = 2.0
    newest: int = 64
    reuse: int = 8

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """The best blocks of the best groups."""
        most = blocks_of(self.budget, block_size)
        rows, width, heads, _ = key_min.shape
        groups = -(-width // self.branch)
        spare = groups * self.branch - width
        place = torch.arange(width, device=q.device)
        past = (place >= num_blocks.view(-1, 1))[:, :, None, None]
        low = pad(key_min.masked_fill(past, torch.inf), (0, 0, 0, 0, 0, spare), value=torch.inf)
        high = pad(key_max.masked_fill(past, -torch.inf), (0, 0, 0, 0, 0, spare), value=-torch.inf)
        low, high = (each.unflatten(1, (groups, self.branch)) for each in (low, high))
        bounds = upper_bound(q, _finite(low.amin(2)), _finite(high.amax(2))).amax(2)
        wide = min(groups, max(1, round(self.beam * most / self.branch)))
        best = bounds.topk(wide, dim=-1).indices
        inside = (best.unsqueeze(-1) * self.branch + torch.arange(self.branch)).flatten(2)
        inside = inside.clamp(max=width - 1)
        scores = torch.full((rows, heads, width), -1e30, dtype=q.dtype)
        for head in range(heads):  # each head looks into groups of its own
            at = inside[:, head, :, None].expand(-1, -1, key_min.shape[-1])
            near_low = key_min[:, :, head].gather(1, at).unsqueeze(2)
            near_high = key_max[:, :, head].gather(1, at).unsqueeze(2)
            found = upper_bound(q[:, head : head + 1], near_low, near_high).amax(2)
            scores[:, head].scatter_(-1, inside[:, head], found[:, 0])
        newest = blocks_of(self.newest, block_size)
        return top_blocks(scores, num_blocks, most=most, newest=newest)


def _finite(bounds: Tensor) -> Tensor:
    """Groups past a sequence's end score nothing instead of not-a-number."""
    return bounds.nan_to_num(0.0, 0.0, 0.0)
