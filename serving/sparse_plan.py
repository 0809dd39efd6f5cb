"""From selections to block tables: each KV head of a request becomes a request of its own.

Paged attention kernels read what a block table names. The KV cache is head-major, so block ``b`` of
head ``h`` is block ``b * num_kv_heads + h`` of a cache of one head, and every head can be given its
own table through the same kernel. A long prompt's segments become rows likewise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds
from serving.selection import DecodeSelector, PrefillSelector, Selection


@dataclass(frozen=True, slots=True)
class Rows:
    """Requests of one KV head each, as a paged attention kernel takes them.

    Attributes:
        tokens: Which query token each query of the rows is, in order, int64 [num_queries]; a row's
            queries stand together.
        heads: Which KV head each query of the rows belongs to, int64 [num_queries].
        table: Blocks of a cache of one head, int32 [num_rows, most_blocks].
        seq_lens: Tokens that each row reads, int32 [num_rows].
        query_starts: Where each row's queries begin, int32 [num_rows + 1].
    """

    tokens: Tensor
    heads: Tensor
    table: Tensor
    seq_lens: Tensor
    query_starts: Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What the engine computes in one step.

    Attributes:
        query_starts: Where each request's new tokens begin, [num_requests + 1].
        seq_lens: Tokens of each request, new ones included.
        block_table: Physical blocks, int32 [num_requests, most_blocks].
        block_size: Tokens of a block.
    """

    query_starts: Sequence[int]
    seq_lens: Sequence[int]
    block_table: Tensor
    block_size: int


def dense_rows(batch: Batch, request: int, num_kv_heads: int) -> Rows:
    """Rows in which the new tokens of one request read all that came before them."""
    start, end = batch.query_starts[request], batch.query_starts[request + 1]
    length = batch.seq_lens[request]
    blocks = batch.block_table[request, : -(-length // batch.block_size)].long()
    head = torch.arange(num_kv_heads)
    new = end - start
    return Rows(
        tokens=torch.arange(start, end).repeat(num_kv_heads),
        heads=head.repeat_interleave(new),
        table=(blocks * num_kv_heads + head.view(-1, 1)).to(torch.int32),
        seq_lens=torch.full((num_kv_heads,), length, dtype=torch.int32),
        query_starts=torch.arange(num_kv_heads + 1, dtype=torch.int32) * new,
    )


def decode_seq_lens(batch: Batch, counts: Tensor) -> Tensor:
    """Tokens that each row of a decode step reads, int32 [num_requests * num_kv_heads].

    Args:
        batch: The step.
        counts: Blocks of each head, [num_requests, num_kv_heads].
    """
    tail = (torch.tensor(batch.seq_lens) - 1) % batch.block_size + 1
    return ((counts - 1) * batch.block_size + tail.unsqueeze(1)).flatten().to(torch.int32)


def decode_rows(batch: Batch, selection: Selection, num_kv_heads: int) -> Rows:
    """Rows for a batch in which each request has one new token."""
    num_requests = len(batch.seq_lens)
    blocks = batch.block_table[:num_requests].long()
    wide = blocks.unsqueeze(1).expand(-1, num_kv_heads, -1)
    physical = wide.gather(2, selection.blocks)
    head = torch.arange(num_kv_heads)
    table = physical * num_kv_heads + head.view(1, -1, 1)
    rows = num_requests * num_kv_heads
    return Rows(
        tokens=torch.arange(num_requests).repeat_interleave(num_kv_heads),
        heads=head.repeat(num_requests),
        table=table.view(rows, -1).to(torch.int32).contiguous(),
        seq_lens=decode_seq_lens(batch, selection.counts),
        query_starts=torch.arange(rows + 1, dtype=torch.int32),
    )


def select_decode(
    selector: DecodeSelector, batch: Batch, q: Tensor, bounds: BlockBounds
) -> Selection:
    """What a batch of one new token each reads.

    Args:
        selector: The policy.
        batch: The step.
        q: Queries times the softmax scale, [num_requests, num_kv_heads, group_size, head_dim].
        bounds: Of the layer.
    """
    num_blocks = -(-torch.tensor(batch.seq_lens) // batch.block_size)
    physical = batch.block_table[: len(batch.seq_lens), : int(num_blocks.max())].long()
    return selector.select(
        q=q.float(),
        key_min=bounds.key_min[physical],
        key_max=bounds.key_max[physical],
        num_blocks=num_blocks,
        block_size=batch.block_size,
    )


def prefill_rows(
    selector: PrefillSelector, batch: Batch, request: int, q: Tensor, bounds: BlockBounds
) -> Rows:
    """Rows for the new tokens of one request, a segment after the other.

    Args:
        selector: The policy.
        batch: The step.
        request: Which of its requests.
        q: Queries times the softmax scale of that request's new tokens, [num_tokens, num_kv_heads,
            group_size, head_dim].
        bounds: Of the layer.
    """
    size, heads = batch.block_size, q.shape[1]
    end = batch.seq_lens[request]
    start = end - q.shape[0]
    starts = torch.arange(start, end, selector.segment)
    ends = (starts + selector.segment).clamp(max=end)
    own = starts // size  # the block in which a segment begins is its own from there on
    table = batch.block_table[request].long()
    past = int(own.max())
    selection = _before(selector, batch, table[:past], q, starts - start, own, bounds)
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
    head = torch.arange(heads)
    rows = len(starts) * heads
    lengths = ends - starts
    seq_lens = selection.counts * size + (ends - own * size).unsqueeze(1)
    queries = lengths.repeat_interleave(heads)
    first = (starts - start + batch.query_starts[request]).repeat_interleave(heads)
    query_starts = torch.cat([torch.zeros(1, dtype=torch.int64), queries.cumsum(0)])
    within = torch.arange(int(query_starts[-1])) - query_starts[:-1].repeat_interleave(queries)
    return Rows(
        tokens=first.repeat_interleave(queries) + within,
        heads=head.repeat(len(starts)).repeat_interleave(queries),
        table=(physical * heads + head.view(1, -1, 1)).view(rows, -1).to(torch.int32),
        seq_lens=seq_lens.reshape(rows).to(torch.int32),
        query_starts=query_starts.to(torch.int32),
    )


def _before(
    selector: PrefillSelector,
    batch: Batch,
    physical: Tensor,
    q: Tensor,
    starts: Tensor,
    own: Tensor,
    bounds: BlockBounds,
) -> Selection:
    """What each segment reads of the blocks before it; nothing where there are none."""
    heads = q.shape[1]
    chosen = Selection(
        torch.zeros(len(own), heads, 0, dtype=torch.int64),
        torch.zeros(len(own), heads, dtype=torch.int64),
    )
    with_past = own > 0
    if not bool(with_past.any()):
        return chosen
    step = max(selector.segment // selector.samples, 1)
    wanted = starts[with_past].unsqueeze(1) + torch.arange(0, selector.segment, step)
    some = selector.select(
        q=q[wanted.clamp(max=q.shape[0] - 1)].float(),
        key_min=bounds.key_min[physical],
        key_max=bounds.key_max[physical],
        num_blocks=own[with_past],
        block_size=batch.block_size,
    )
    blocks = torch.zeros(len(own), heads, some.blocks.shape[-1], dtype=torch.int64)
    blocks[with_past] = some.blocks
    counts = chosen.counts.clone()
    counts[with_past] = some.counts
    return Selection(blocks, counts)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several requests as one call of the kernel."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.table.shape[1] for part in parts)
    tables = [torch.nn.functional.pad(p.table, (0, width - p.table.shape[1])) for p in parts]
    counts = torch.cat([part.query_starts.diff() for part in parts])
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return Rows(
        tokens=torch.cat([part.tokens for part in parts]),
        heads=torch.cat([part.heads for part in parts]),
        table=torch.cat(tables),
        seq_lens=torch.cat([part.seq_lens for part in parts]),
        query_starts=starts.to(torch.int32),
    )
