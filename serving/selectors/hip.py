"""Hierarchical search over blocks (HiP attention, arXiv:2406.09827): few are looked at closely."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from serving.seen_keys import SeenKeys
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
        part: Tokens of a block that are bounded together.
        newest: Tokens at the end that are read always.
        reuse: Steps for which a selection is kept.
    """

    phase: ClassVar[Literal["decode"]] = "decode"
    budget: int = 1_024
    branch: int = 8
    beam: float = 2.0
    part: int = 16
    newest: int = 64
    reuse: int = 8

    def select(self, *, q: Tensor, keys: SeenKeys) -> Selection:
        """The best blocks of the best groups."""
        most = blocks_of(self.budget, keys.block_size)
        key_min, key_max = keys.laid_out()
        rows, width, heads, dim = key_min.shape
        inner = keys.parts * self.branch  # parts of a group
        groups = -(-width // inner)
        spare = (0, 0, 0, 0, 0, groups * inner - width)
        past = keys.past()[:, :, None, None]
        low = pad(key_min.masked_fill(past, torch.inf), spare, value=torch.inf)
        high = pad(key_max.masked_fill(past, -torch.inf), spare, value=-torch.inf)
        low, high = (each.unflatten(1, (groups, inner)) for each in (low, high))
        bounds = upper_bound(q, _finite(low.amin(2)), _finite(high.amax(2))).amax(2)
        wide = min(groups, max(1, round(self.beam * most / self.branch)))
        best = bounds.topk(wide, dim=-1).indices
        scores = torch.full((rows, heads, groups, inner), -1e30, dtype=q.dtype, device=q.device)
        for head in range(heads):  # each head looks into groups of its own
            at = best[:, head, :, None, None].expand(-1, -1, inner, dim)
            near_low, near_high = (
                _finite(each[:, :, :, head].gather(1, at)).flatten(1, 2).unsqueeze(2)
                for each in (low, high)
            )
            found = upper_bound(q[:, head : head + 1], near_low, near_high).amax(2)
            inside = best[:, head].unsqueeze(-1).expand(-1, -1, inner)
            scores[:, head].scatter_(1, inside, found[:, 0].unflatten(-1, (wide, inner)))
        parts = scores.flatten(2)[..., :width].unflatten(-1, (-1, keys.parts))
        newest = blocks_of(self.newest, keys.block_size)
        return top_blocks(parts.amax(-1), keys.num_blocks, most=most, newest=newest)


def _finite(bounds: Tensor) -> Tensor:
    """What is past a sequence's end scores nothing instead of not-a-number."""
    return bounds.nan_to_num(0.0, 0.0, 0.0)
