"""MInference (arXiv:2407.02490) over blocks: each head reads a prompt by a pattern of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from serving.head_patterns import HeadPattern, load_patterns
from serving.selection import Selection, always, blocks_of, chosen_blocks
from serving.selectors.critiprefill import attention

__all__ = ["MInference"]


@dataclass(frozen=True, slots=True)
class MInference:
    """Reads columns and diagonals, or the beginning and the newest tokens.

    Which head does which is measured beforehand by ``python -m serving.calibrate``. Without a file
    every head reads columns and diagonals by halves.

    Attributes:
        heads: The file with the patterns; its path holds no comma or semicolon.
        budget: Tokens before a segment that each KV head reads; a dense head reads all.
        first: Of them at the beginning.
        segment: Tokens of a segment; its own are read always.
        samples: Queries of the last segment that columns and diagonals are looked for with.
    """

    phase: ClassVar[Literal["prefill"]] = "prefill"
    heads: Path | None = None
    budget: int = 1_024
    first: int = 64
    segment: int = 512
    samples: int = 16

    def __post_init__(self) -> None:
        """A file that cannot be used is said at once.

        Raises:
            BadOption: there is no such file, or it holds no patterns.
        """
        if self.heads is not None:
            load_patterns(self.heads)

    def for_layer(self, layer: int, num_kv_heads: int) -> "LayerPatterns | None":
        """The selector of one layer; None where the file says nothing of it."""
        if self.heads is None:
            return LayerPatterns(self, (HeadPattern("vertical_slash"),) * num_kv_heads)
        layers = load_patterns(self.heads).layers
        if layer >= len(layers) or len(layers[layer]) != num_kv_heads:
            return None
        return LayerPatterns(self, layers[layer])

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """Columns and diagonals for every head."""
        halves = LayerPatterns(self, (HeadPattern("vertical_slash"),) * q.shape[2])
        return halves.select(
            q=q, key_min=key_min, key_max=key_max, num_blocks=num_blocks, block_size=block_size
        )


class LayerPatterns:
    """MInference in one layer.

    Attributes:
        budget: As in ``MInference``.
        segment: Likewise.
        samples: Likewise.
    """

    phase: ClassVar[Literal["prefill"]] = "prefill"

    def __init__(self, options: MInference, patterns: tuple[HeadPattern, ...]) -> None:
        """The patterns of the layer's KV heads, in their order."""
        self.budget, self.segment = options.budget, options.segment
        self.samples, self._first = options.samples, options.first
        self._vertical = torch.tensor([each.vertical for each in patterns])
        kinds = [each.pattern for each in patterns]
        self._window = torch.tensor([kind == "a_shape" for kind in kinds])
        self._dense = torch.tensor([kind == "dense" for kind in kinds])

    def select(
        self, *, q: Tensor, key_min: Tensor, key_max: Tensor, num_blocks: Tensor, block_size: int
    ) -> Selection:
        """What each head's pattern reads.

        Raises:
            ValueError: the budget is used up by the beginning.
        """
        width = key_min.shape[0]
        most = blocks_of(self.budget, block_size)
        first = blocks_of(self._first, block_size)
        if most <= first:
            raise ValueError(f"a budget of {self.budget} tokens leaves nothing after {self._first}")
        edges = always(num_blocks, width, first=first, newest=1)
        window = always(num_blocks, width, first=first, newest=most - first)
        there = torch.arange(width) < num_blocks.view(-1, 1, 1)
        if bool((self._window | self._dense).all()):
            found = window
        else:
            found = self._columns_and_diagonals(
                q[-1:], key_min, key_max, num_blocks, block_size, edges, most
            )
        chosen = torch.where(self._window.view(1, -1, 1), window, found)
        return chosen_blocks(torch.where(self._dense.view(1, -1, 1), there, chosen))

    def _columns_and_diagonals(
        self,
        q: Tensor,
        key_min: Tensor,
        key_max: Tensor,
        num_blocks: Tensor,
        block_size: int,
        edges: Tensor,
        most: int,
    ) -> Tensor:
        """Which blocks, bool [num_segments, num_kv_heads, max_blocks].

        A segment is several blocks long, so it reads a block for all diagonals that pass through
        both: the block counts by their attention together.
        """
        samples, width = q.shape[1], key_min.shape[0]
        rows = attention(q, key_min, key_max, num_blocks[-1:])[0]
        shares = rows.unflatten(1, (samples, -1)).mean(2)  # [heads, samples, blocks]
        tall = blocks_of(self.segment, block_size)
        inside = torch.arange(samples) * self.segment // samples // block_size
        place = torch.arange(width)
        distance = (int(num_blocks[-1]) + inside.unsqueeze(1) - place).clamp(min=0)
        by_distance = torch.zeros(shares.shape[0], width + tall + 1).scatter_add_(
            1, distance.flatten().expand(shares.shape[0], -1), shares.flatten(1)
        )
        up_to = torch.nn.functional.pad(by_distance.cumsum(1), (1, 0))
        near = (num_blocks.view(-1, 1) - place).clamp(min=0)  # of a segment's first block
        diagonals = up_to[:, near + tall] - up_to[:, near]  # [heads, segments, blocks]
        columns = shares.mean(1).unsqueeze(0)  # [1, heads, blocks]
        past = place >= num_blocks.view(-1, 1, 1)
        room = (most - edges.sum(-1, keepdim=True)).clamp(min=0)
        vertical = (room * self._vertical.view(1, -1, 1)).round()
        read = edges | _best(columns.masked_fill(edges | past, -1), vertical)
        left = most - read.sum(-1, keepdim=True)
        return read | _best(diagonals.transpose(0, 1).masked_fill(read | past, -1), left)


def _best(scores: Tensor, count: Tensor) -> Tensor:
    """The best so many of each row, bool as the scores; what is below 0 is never taken."""
    rank = scores.argsort(-1, descending=True).argsort(-1)
    return (rank < count) & (scores >= 0)
