"""From selections to block tables: each KV head of a request becomes a request of its own.

Paged attention kernels read what a block table names. The KV cache is head-major, so block ``b`` of
head ``h`` is block ``b * num_kv_heads + h`` of a cache of one head, and every head can be given its
own table through the same kernel. A long prompt's segments become rows likewise
(``serving/prefill_plan.py``). Where the cache lies otherwise, all heads of a request share one row:
they count as one KV head from the bounds of its keys on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds, Room
from serving.seen_keys import SeenKeys
from serving.selection import DecodeSelector, Selection, as_one_head


@dataclass(frozen=True, slots=True)
class Rows:
    """Requests of one KV head each, as a paged attention kernel takes them.

    Attributes:
        places: Whose queries they are, in order: the token's number times the number of KV heads,
            and the head's, int64 [num_queries]; a row's queries stand together. None: all of them
            in this order.
        table: Blocks of a cache of one head, int32 [num_rows, most_blocks].
        seq_lens: Tokens that each row reads, int32 [num_rows].
        query_starts: Where each row's queries begin, int32 [num_rows + 1].
    """

    places: Tensor | None
    table: Tensor
    seq_lens: Tensor
    query_starts: Tensor

    def back(self) -> Tensor:
        """Where among the queries each token's heads are: the inverse of the places.

        Raises:
            ValueError: the queries are in order, so there is nothing to bring back.
        """
        if self.places is None:
            raise ValueError("rows whose queries are in order have no places")
        order = torch.arange(len(self.places))
        return torch.empty_like(self.places).scatter_(0, self.places, order)


@dataclass(frozen=True, slots=True)
class Batch:
    """What the engine computes in one step.

    Attributes:
        query_starts: Where each request's new tokens begin, [num_requests + 1].
        seq_lens: Tokens of each request, new ones included.
        block_table: Physical blocks, int32 [num_requests, most_blocks].
        block_size: Tokens of a block.
        room: Memory for what is looked at, used by one layer after the other.
    """

    query_starts: Sequence[int]
    seq_lens: Sequence[int]
    block_table: Tensor
    block_size: int
    room: Room = field(default_factory=Room)


def dense_rows(batch: Batch, request: int, num_kv_heads: int) -> Rows:
    """Rows in which the new tokens of one request read all that came before them."""
    start, end = batch.query_starts[request], batch.query_starts[request + 1]
    length = batch.seq_lens[request]
    blocks = batch.block_table[request, : -(-length // batch.block_size)].long()
    head = torch.arange(num_kv_heads)
    new = end - start
    return Rows(
        places=(torch.arange(start, end) * num_kv_heads + head.view(-1, 1)).flatten(),
        table=(blocks * num_kv_heads + head.view(-1, 1)).to(torch.int32),
        seq_lens=torch.full((num_kv_heads,), length, dtype=torch.int32),
        query_starts=torch.arange(num_kv_heads + 1, dtype=torch.int32) * new,
    )


def decode_rows(batch: Batch, selection: Selection, num_kv_heads: int) -> Rows:
    """Rows for a batch in which each request has one new token."""
    num_requests = len(batch.seq_lens)
    blocks = batch.block_table[:num_requests].long()
    wide = blocks.unsqueeze(1).expand(-1, num_kv_heads, -1)
    physical = wide.gather(2, selection.blocks)
    head = torch.arange(num_kv_heads)
    table = physical * num_kv_heads + head.view(1, -1, 1)
    rows = num_requests * num_kv_heads
    tail = (torch.tensor(batch.seq_lens) - 1) % batch.block_size + 1
    seq_lens = (selection.counts - 1) * batch.block_size + tail.unsqueeze(1)
    return Rows(
        places=None,
        table=table.view(rows, -1).to(torch.int32).contiguous(),
        seq_lens=seq_lens.flatten().to(torch.int32),
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
        bounds: Of the layer; where they are of one head for all, the selection is shared.
    """
    if bounds.num_kv_heads < q.shape[1]:
        q = as_one_head(q)
    most = -(-max(batch.seq_lens) // batch.block_size)
    keys = SeenKeys(
        bounds,
        batch.block_table[: len(batch.seq_lens), :most],
        torch.tensor(batch.seq_lens),
        batch.block_size,
        batch.room,
    )
    return selector.select(q=q.float(), keys=keys)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several requests, with their places given, as one call of the kernel."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.table.shape[1] for part in parts)
    tables = [torch.nn.functional.pad(p.table, (0, width - p.table.shape[1])) for p in parts]
    counts = torch.cat([part.query_starts.diff() for part in parts])
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return Rows(
        places=torch.cat([part.places for part in parts if part.places is not None]),
        table=torch.cat(tables),
        seq_lens=torch.cat([part.seq_lens for part in parts]),
        query_starts=starts.to(torch.int32),
    )
