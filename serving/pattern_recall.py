"""How much of a head's attention a pattern reads, measured on real queries and keys.

What is measured is the selector itself, by way of the block tables that an engine would be given:
each sampled query's attention is computed in full, and summed where the table points.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds
from serving.head_patterns import HeadPattern
from serving.prefill_plan import cut, prefill_rows
from serving.selection import PrefillSelector
from serving.selectors.minference import LayerPatterns, MInference
from serving.sparse_plan import Batch

BLOCK_SIZE = 32
CANDIDATES = (
    HeadPattern("a_shape"),
    *(HeadPattern("vertical_slash", vertical) for vertical in (0.25, 0.5, 0.75)),
)
_SAMPLES = 8
_CHUNK = 2_048  # tokens that engines compute in one step by default


def recall(selector: PrefillSelector, q: Tensor, keys: Tensor) -> Tensor:
    """Share of the attention within what is read, of each KV head, float32 [num_kv_heads].

    Args:
        selector: The policy.
        q: Queries of one document times the softmax scale, [num_tokens, num_kv_heads, group_size,
            head_dim].
        keys: [num_tokens, num_kv_heads, head_dim].

    Raises:
        ValueError: the document is no longer than the budget.
    """
    tokens, heads, _ = keys.shape
    num_blocks = -(-tokens // BLOCK_SIZE)
    bounds = BlockBounds(num_blocks, heads, keys.shape[2], block_size=BLOCK_SIZE, part=BLOCK_SIZE)
    bounds.write(keys, torch.arange(tokens))
    table = torch.arange(num_blocks, dtype=torch.int32).unsqueeze(0)
    shares: list[list[Tensor]] = [[] for _ in range(heads)]
    for start in range(0, tokens, _CHUNK):
        end = min(start + _CHUNK, tokens)
        batch = Batch([0, end - start], [end], table, BLOCK_SIZE)
        segments = cut(batch, 0, selector.segment, heads)
        rows = prefill_rows(selector, batch, 0, q[start:end], bounds, segments=segments)
        for row, (first, last) in enumerate(zip(segments.starts, segments.ends, strict=True)):
            if int(first) <= selector.budget:
                continue  # everything before is read
            some = torch.linspace(int(first), int(last) - 1, _SAMPLES).round().long()
            for head in range(heads):
                length = int(rows.seq_lens[row * heads + head])
                blocks = rows.table[row * heads + head, : -(-length // BLOCK_SIZE)] // heads
                read = torch.zeros(num_blocks, dtype=torch.bool)
                read[blocks.long()] = True
                scores = q[some, head].flatten(0, 1) @ keys[:end, head].T
                after = torch.arange(end) > some.repeat_interleave(q.shape[2]).unsqueeze(1)
                weights = scores.masked_fill(after, -torch.inf).softmax(-1)
                within = read.repeat_interleave(BLOCK_SIZE)[:end]
                shares[head].append((weights * within).sum(-1).mean())
    if not shares[0]:
        raise ValueError(f"{tokens} tokens are no more than the budget of {selector.budget}")
    return torch.stack([torch.stack(each).mean() for each in shares])


def measure(options: MInference, q: Tensor, keys: Tensor) -> Tensor:
    """What each of ``CANDIDATES`` reads of a document, float32 [num_candidates, num_kv_heads].

    Args:
        options: Budget, segment and so on.
        q: As for ``recall``.
        keys: Likewise.

    Raises:
        ValueError: the document is no longer than the budget.
    """
    heads = keys.shape[1]
    layers = (LayerPatterns(options, (each,) * heads) for each in CANDIDATES)
    return torch.stack([recall(layer, q, keys) for layer in layers])


def best_patterns(measured: Sequence[Tensor], *, at_least: float) -> tuple[HeadPattern, ...]:
    """The pattern of each KV head of a layer that reads most of its attention.

    Args:
        measured: Of each document, from ``measure``.
        at_least: A head of which no pattern reads this share stays dense.
    """
    shares, best = torch.stack(list(measured)).mean(0).max(0)
    return tuple(
        replace(CANDIDATES[number], share=round(share, 4))
        if share >= at_least
        else HeadPattern("dense", share=1.0)
        for share, number in zip(shares.tolist(), best.tolist(), strict=True)
    )
