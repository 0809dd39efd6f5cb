"""One layer's sparse attention: what is known of its keys, and what is read in each step.

It knows nothing of vLLM. An engine's backend hands it keys as they are cached and queries as they
come, and gets rows for a paged kernel, or None: read everything.
"""

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from serving.block_bounds import BlockBounds, Room
from serving.prefill_plan import Segments, cut, prefill_rows
from serving.selection import DecodeSelector, PerLayer, PrefillSelector, layer_number
from serving.sparse_plan import (
    Batch,
    Rows,
    decode_rows,
    dense_rows,
    joined,
    select_decode,
)
from serving.sparse_plugin import Attention

log = logging.getLogger(__name__)

_room = Room()  # of this process, whose layers run one after the other


@dataclass(slots=True)
class Step:
    """One step of the engine, and what all layers of it share.

    Attributes:
        batch: What is computed.
        last_blocks: The newest physical block of each request.
        segments: How a request's new tokens are cut, by its number.
        schedules: The kernel's plans, by the lengths of the rows.
    """

    batch: Batch
    last_blocks: list[int]
    segments: dict[int, Segments] = field(default_factory=dict)
    schedules: dict[bytes, Tensor] = field(default_factory=dict)


def step_of(
    query_starts: Tensor, seq_lens: Tensor, block_table: Tensor, *, block_size: int
) -> Step:
    """A step from an engine's tensors.

    Args:
        query_starts: Where each request's new tokens begin, [at least num_requests + 1].
        seq_lens: Tokens of each request, new ones included, [num_requests].
        block_table: Physical blocks, [at least num_requests, most_blocks].
        block_size: Tokens of a block.
    """
    count = len(seq_lens)
    newest = ((seq_lens - 1) // block_size).long().unsqueeze(1)
    batch = Batch(
        query_starts=query_starts[: count + 1].tolist(),
        seq_lens=seq_lens.tolist(),
        block_table=block_table[:count],
        block_size=block_size,
        room=_room,
    )
    return Step(batch, block_table[:count].gather(1, newest).squeeze(1).tolist())


def shared_step(metadata: Any, block_size: int) -> Step:
    """The step of an engine's metadata, made by the first layer that asks and kept there."""
    known: Step | None = getattr(metadata, "gistree_step", None)
    if known is None:
        known = metadata.gistree_step = step_of(
            metadata.query_start_loc,
            metadata.seq_lens,
            metadata.block_table,
            block_size=block_size,
        )
    return known


@dataclass(slots=True)
class _Kept:
    """A decode selection that is used for several steps."""

    rows: Rows
    steps: int = 0
    next_lens: list[int] = field(default_factory=list)
    last_blocks: list[int] = field(default_factory=list)


class SparseLayer:
    """Sparse attention of one layer.

    Attributes:
        tokens_read: Tokens that heads have read where a selector chose, for tests and benchmarks.
        tokens_there: Tokens that they would have read without it.
    """

    def __init__(
        self,
        attention: Attention,
        *,
        num_kv_heads: int,
        group_size: int,
        head_dim: int,
        scale: float,
    ) -> None:
        """A layer that has seen no keys.

        Args:
            attention: The selectors.
            num_kv_heads: Of this process.
            group_size: Query heads of a KV head.
            head_dim: Of keys and queries.
            scale: The softmax scale.
        """
        self._shape = (num_kv_heads, group_size, head_dim)
        self._num_rows = num_kv_heads
        self._scale = scale
        self._bounds: BlockBounds | None = None
        self._part: int | None = None
        self.tokens_read = self.tokens_there = 0
        self.use(attention)

    def use(self, attention: Attention) -> None:
        """Takes other selectors from the next step on.

        Raises:
            ValueError: they look at other parts of blocks than those whose bounds are kept.
        """
        part: int | None = getattr(attention.decode, "part", None)
        if part not in (None, self._part):
            if self._bounds is not None:
                raise ValueError(f"keys are bounded {self._part} by {self._part}, not {part}")
            self._part = part
        self._attention = attention
        self._prefill: PrefillSelector | PerLayer | None = attention.prefill
        self._kept: _Kept | None = None

    @property
    def shared(self) -> bool:
        """Whether all KV heads of a request read the same blocks."""
        return self._num_rows < self._shape[0]

    def share(self) -> None:
        """Has all KV heads read the same blocks, for a cache in which heads do not lie apart.

        Raises:
            ValueError: keys were taken in head by head before.
        """
        if self._bounds is not None and not self.shared:
            raise ValueError("a layer shares its selection from its first key on, or never")
        self._num_rows = 1

    def write(self, keys: Tensor, slots: Tensor, *, num_blocks: int, block_size: int) -> None:
        """Takes in keys as they are cached.

        Args:
            keys: [num_tokens, num_kv_heads, head_dim]; what is past the slots is padding.
            slots: Where each goes, int64 [num_tokens].
            num_blocks: Blocks of the whole cache.
            block_size: Tokens of a block.
        """
        if self._bounds is None or self._bounds.key_min.shape[0] != num_blocks:
            heads, _, dim = self._shape
            rows = self._num_rows
            self._bounds = BlockBounds(
                num_blocks,
                rows,
                heads // rows * dim,
                block_size=block_size,
                part=self._part or block_size,
            )
        count = min(len(keys), len(slots))
        keys = keys[:count].reshape(count, self._num_rows, -1)
        self._bounds.write(keys, slots[:count])

    def rows(self, layer_name: str, query: Tensor, step: Step) -> Rows | None:
        """What the kernel is to read; None for everything.

        Args:
            layer_name: As the engine names it, with the layer's number.
            query: [num_tokens, num_heads, head_dim].
            step: The engine's step.
        """
        batch, number = step.batch, layer_number(layer_name)
        if self._bounds is None or number < self._attention.dense_layers:
            return None
        longest = max(batch.seq_lens)
        if batch.query_starts[-1] == len(batch.seq_lens):
            decode = self._attention.decode
            if decode is None or longest < self._attention.least(decode.budget):
                return None
            rows = self._decode(decode, query, step, self._bounds)
        else:
            self._kept = None  # blocks may belong to other sequences now
            prefill = self._of_layer(number)
            if prefill is None or longest < self._attention.least(prefill.budget):
                return None
            rows = self._prompts(prefill, query, step, self._bounds)
        self._count(rows, batch)
        return rows

    def _of_layer(self, number: int) -> PrefillSelector | None:
        """The prefill selector of this layer, made at the first call: only then is it known."""
        if isinstance(self._prefill, PerLayer):
            heads = self._num_rows
            self._prefill = self._prefill.for_layer(number, heads)
            if self._prefill is None:
                say_once(
                    "prompts stay dense: the head patterns name no layer %s of %s KV heads",
                    number,
                    heads,
                )
        return self._prefill

    def _decode(
        self, selector: DecodeSelector, query: Tensor, step: Step, bounds: BlockBounds
    ) -> Rows:
        batch, kept = step.batch, self._kept
        lengths = list(batch.seq_lens)
        if (
            kept is None
            or kept.steps >= selector.reuse
            or kept.next_lens != lengths
            or kept.last_blocks != step.last_blocks
        ):
            q = query[: len(lengths)].reshape(-1, *self._shape).float() * self._scale
            selection = select_decode(selector, batch, q, bounds)
            kept = self._kept = _Kept(decode_rows(batch, selection, self._num_rows))
        else:
            kept.rows = replace(kept.rows, seq_lens=kept.rows.seq_lens + 1)
        kept.steps += 1
        kept.next_lens = [length + 1 for length in lengths]
        kept.last_blocks = step.last_blocks
        return kept.rows

    def _prompts(
        self, selector: PrefillSelector, query: Tensor, step: Step, bounds: BlockBounds
    ) -> Rows:
        batch, heads = step.batch, self._num_rows
        single = self._single(batch)
        parts = [self._beside_prompts(single, query, batch, bounds)] if single else []
        for request, (start, end) in enumerate(
            zip(batch.query_starts[:-1], batch.query_starts[1:], strict=True)
        ):
            if request in single:
                continue
            if end - start == 1 or batch.seq_lens[request] < self._attention.least(selector.budget):
                parts.append(dense_rows(batch, request, heads))
                continue
            if request not in step.segments:
                step.segments[request] = cut(batch, request, selector.segment, heads)
            parts.append(
                prefill_rows(
                    selector,
                    batch,
                    request,
                    query[start:end].view(-1, *self._shape),
                    bounds,
                    segments=step.segments[request],
                    scale=self._scale,
                )
            )
        return joined(parts)

    def _single(self, batch: Batch) -> list[int]:
        """Requests that decode in a step in which others are prompts, and are to be sparse."""
        decode = self._attention.decode
        if decode is None:
            return []
        least = self._attention.least(decode.budget)
        starts = batch.query_starts
        return [
            request
            for request, length in enumerate(batch.seq_lens)
            if starts[request + 1] - starts[request] == 1 and length >= least
        ]

    def _beside_prompts(
        self, requests: list[int], query: Tensor, batch: Batch, bounds: BlockBounds
    ) -> Rows:
        """Rows of requests that decode; their selection is for this step alone."""
        heads = self._num_rows
        chosen = torch.tensor(requests)
        alone = Batch(
            query_starts=range(len(requests) + 1),
            seq_lens=[batch.seq_lens[request] for request in requests],
            block_table=batch.block_table[chosen],
            block_size=batch.block_size,
            room=batch.room,
        )
        tokens = torch.tensor([batch.query_starts[request] for request in requests])
        q = query[tokens].view(-1, *self._shape).float() * self._scale
        selection = select_decode(self._attention.decode, alone, q, bounds)
        places = (tokens.view(-1, 1) * heads + torch.arange(heads)).flatten()
        return replace(decode_rows(alone, selection, heads), places=places)

    def _count(self, rows: Rows, batch: Batch) -> None:
        """Each query counts the tokens before it in its row, and in its whole sequence."""
        heads = self._num_rows
        if rows.places is None:  # one query a row
            self.tokens_read += int(rows.seq_lens.sum())
            self.tokens_there += sum(batch.seq_lens) * heads
            return
        queries = rows.query_starts.diff().long()
        self.tokens_read += int((queries * (rows.seq_lens - (queries - 1) / 2)).sum())
        for start, end, length in zip(
            batch.query_starts[:-1], batch.query_starts[1:], batch.seq_lens, strict=True
        ):
            new = end - start
            self.tokens_there += int(new * (length - (new - 1) / 2)) * heads


_said: set[tuple[object, ...]] = set()


def say_once(what: str, *why: object) -> None:
    """A warning, once for all layers that are alike."""
    if (what, *why) not in _said:
        _said.add((what, *why))
        log.warning(what, *why)
