"""A long prompt in segments: each reads the blocks selected for it, then its own tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds
from serving.selection import PrefillSelector, Selection, as_one_head
from serving.sparse_plan import Batch, Rows


@dataclass(frozen=True, slots=True)
class Segments:
    """The new tokens of one request, cut; the same in all layers.

    Attributes:
        starts: Where each segment begins in the sequence, int64 [num_segments].
        ends: Where it ends.
        own: The block in which it begins, which is its own from there on.
        places: As in ``Rows``: of each segment, of each head, its tokens.
        query_starts: As in ``Rows``: a row for each segment and head.
    """

    starts: Tensor
    ends: Tensor
    own: Tensor
    places: Tensor
    query_starts: Tensor


def cut(batch: Batch, request: int, segment: int, num_kv_heads: int) -> Segments:
    """Segments of one request's new tokens.

    Args:
        batch: The step.
        request: Which of its requests.
        segment: Tokens of each; the last may be shorter.
        num_kv_heads: Heads that get a row each.
    """
    first = batch.query_starts[request]
    new = batch.query_starts[request + 1] - first
    end = batch.seq_lens[request]
    starts = torch.arange(end - new, end, segment)
    ends = (starts + segment).clamp(max=end)
    head = torch.arange(num_kv_heads).view(-1, 1)
    grid = (first + torch.arange(new)) * num_kv_heads
    full = new // segment * segment
    whole = grid[:full].view(-1, 1, segment) + head
    queries = (ends - starts).view(-1, 1).expand(-1, num_kv_heads).flatten()
    return Segments(
        starts=starts,
        ends=ends,
        own=starts // batch.block_size,
        places=torch.cat([whole.flatten(), (grid[full:] + head).flatten()]),
        query_starts=torch.nn.functional.pad(queries.cumsum(0), (1, 0)).to(torch.int32),
    )


def prefill_rows(
    selector: PrefillSelector,
    batch: Batch,
    request: int,
    q: Tensor,
    bounds: BlockBounds,
    *,
    segments: Segments,
    scale: float = 1.0,
) -> Rows:
    """Rows for the new tokens of one request, a segment after the other.

    Args:
        selector: The policy.
        batch: The step.
        request: Which of its requests.
        q: Queries of that request's new tokens, [num_tokens, num_kv_heads, group_size, head_dim].
        bounds: Of the layer; where they are of one head for all, the selection is shared.
        segments: What ``cut`` made of that request.
        scale: What queries are multiplied with: the softmax scale.
    """
    size, heads = batch.block_size, bounds.num_kv_heads
    ends, own = segments.ends, segments.own
    end = batch.seq_lens[request]
    table = batch.block_table[request].long()
    selection = _before(selector, batch, table, q, bounds, segments, scale)
    own_most = int(((ends - 1) // size + 1 - own).max())
    width = selection.blocks.shape[-1] + own_most
    rank = torch.arange(width)
    counts = selection.counts.unsqueeze(-1)
    place = torch.where(
        rank < counts,
        torch.nn.functional.pad(selection.blocks, (0, own_most)),
        own.view(-1, 1, 1) + rank - counts,
    )
    physical = table[place.clamp(max=(end - 1) // size)]
    head = torch.arange(heads).view(1, -1, 1)
    seq_lens = selection.counts * size + (ends - own * size).unsqueeze(1)
    return Rows(
        places=segments.places,
        table=(physical * heads + head).flatten(0, 1).to(torch.int32),
        seq_lens=seq_lens.flatten().to(torch.int32),
        query_starts=segments.query_starts,
    )


def _before(
    selector: PrefillSelector,
    batch: Batch,
    table: Tensor,
    q: Tensor,
    bounds: BlockBounds,
    segments: Segments,
    scale: float,
) -> Selection:
    """What each segment reads of the blocks before it; nothing where there are none."""
    starts, own, heads = segments.starts, segments.own, bounds.num_kv_heads
    chosen = Selection(
        torch.zeros(len(own), heads, 0, dtype=torch.int64),
        torch.zeros(len(own), heads, dtype=torch.int64),
    )
    empty = int((own == 0).sum())  # they come first
    if empty == len(own):
        return chosen
    step = max(selector.segment // selector.samples, 1)
    some = torch.arange(0, selector.segment, step)
    wanted = (starts[empty:] - starts[0]).unsqueeze(1) + some
    key_min, key_max = bounds.whole.of(table[: int(own[-1])].expand(heads, -1), batch.room)
    sampled = q[wanted.clamp(max=q.shape[0] - 1)].float() * scale
    found = selector.select(
        q=sampled if heads == q.shape[1] else as_one_head(sampled),
        key_min=key_min.transpose(0, 1),
        key_max=key_max.transpose(0, 1),
        num_blocks=own[empty:],
        block_size=batch.block_size,
    )
    nothing = (0, 0, 0, 0, empty, 0)
    return Selection(
        torch.nn.functional.pad(found.blocks, nothing),
        torch.nn.functional.pad(found.counts, nothing[2:]),
    )
