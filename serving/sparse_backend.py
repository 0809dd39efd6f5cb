"""Sparse attention in vLLM: its own CPU kernel with shorter block tables.

Only this file knows vLLM's internals. The KV cache, prefix caching, chunked prefill and batching
stay vLLM's. Layers with sliding windows, ALiBi, sinks, a quantised or a shared cache, and encoders,
stay dense.
"""

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from vllm import _custom_ops as ops
from vllm import envs
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
)

from serving.block_bounds import BlockBounds
from serving.prefill_plan import Segments, cut, prefill_rows
from serving.selection import PerLayer, PrefillSelector, layer_number
from serving.sparse_plan import (
    Batch,
    Rows,
    decode_rows,
    decode_seq_lens,
    dense_rows,
    joined,
    select_decode,
)
from serving.sparse_plugin import Attention, wanted

log = logging.getLogger(__name__)


class SparseBackend(CPUAttentionBackend):  # type: ignore[misc]  # vLLM is untyped here
    """vLLM's CPU backend with another implementation of attention."""

    @staticmethod
    def get_impl_cls() -> type["SparseImpl"]:
        """The implementation."""
        return SparseImpl


@dataclass(slots=True)
class _Step:
    """What all layers of one step share."""

    batch: Batch
    same: tuple[int, ...]
    schedules: dict[bytes, Tensor] = field(default_factory=dict)
    segments: dict[int, Segments] = field(default_factory=dict)


@dataclass(slots=True)
class _Kept:
    """A decode selection that is used for several steps."""

    same: tuple[int, ...]
    rows: Rows
    counts: Tensor
    steps: int


class SparseImpl(CPUAttentionBackendImpl):  # type: ignore[misc]
    """Attention of one layer.

    Attributes:
        tokens_read: Tokens that heads have read where a selector chose, for tests and benchmarks.
        tokens_there: Tokens that they would have read without it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As vLLM makes it; the selectors come from the environment."""
        super().__init__(*args, **options)
        self.use(wanted())
        self._bounds: BlockBounds | None = None
        self.tokens_read = self.tokens_there = 0
        self._covered = (
            self.attn_type == AttentionType.DECODER
            and self.sliding_window == -1
            and self.alibi_slopes is None
            and self.sinks is None
            and not self.is_fp8_kv_cache
            and self.kv_sharing_target_layer_name is None
        )
        if not self._covered:
            _say_once(
                "layers of type %s, window %s, cache %s stay dense",
                self.attn_type,
                self.sliding_window,
                self.kv_cache_dtype,
            )

    def use(self, attention: Attention) -> None:
        """Takes other selectors from the next step on."""
        self._attention = attention
        self._prefill: PrefillSelector | PerLayer | None = attention.prefill
        self._kept: _Kept | None = None

    def do_kv_cache_update(
        self,
        layer: torch.nn.Module,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        slot_mapping: Tensor,
    ) -> None:
        """Writes keys and values, and takes the keys into their blocks' bounds."""
        super().do_kv_cache_update(layer, key, value, kv_cache, slot_mapping)
        if not self._covered:
            return
        num_blocks, num_kv_heads, block_size, width = kv_cache.shape
        if self._bounds is None or self._bounds.key_min.shape[0] != num_blocks:
            self._bounds = BlockBounds(num_blocks, num_kv_heads, width // 2)
        count = min(len(key), len(slot_mapping))
        self._bounds.write(key[:count], slot_mapping[:count], block_size)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: CPUAttentionMetadata | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """Attention, sparse where it pays and dense elsewhere; shapes as in vLLM's own."""
        rows = self._rows(layer, query, kv_cache, attn_metadata)
        if rows is None:
            dense: Tensor = super().forward(
                layer,
                query,
                key,
                value,
                kv_cache,
                attn_metadata,
                output,
                output_scale,
                output_block_scale,
            )
            return dense
        self._compute(layer, query, kv_cache, attn_metadata, output, rows)
        return output

    def _rows(
        self, layer: Any, query: Tensor, kv_cache: Tensor, metadata: CPUAttentionMetadata | None
    ) -> Rows | None:
        """What the kernel is to read; None for all."""
        if (
            metadata is None
            or not self._covered
            or self._bounds is None
            or not metadata.causal
            or metadata.dynamic_causal is not None
            or layer_number(layer.layer_name) < self._attention.dense_layers
        ):
            return None
        decode, prefill = self._attention.decode, self._of_layer(layer.layer_name)
        if metadata.max_query_len == 1:
            if decode is None or metadata.max_seq_len < self._attention.least(decode.budget):
                return None
            return self._decode_rows(query, _step(metadata, kv_cache.shape[2]))
        if prefill is None or metadata.max_seq_len < self._attention.least(prefill.budget):
            return None
        return self._prefill_rows(query, _step(metadata, kv_cache.shape[2]), prefill)

    def _of_layer(self, layer_name: str) -> PrefillSelector | None:
        """The prefill selector of this layer, made at the first call: only then is it known."""
        if isinstance(self._prefill, PerLayer):
            number = layer_number(layer_name)
            self._prefill = self._prefill.for_layer(number, self.num_kv_heads)
            if self._prefill is None:
                _say_once(
                    "prompts stay dense: the head patterns name no layer %s of %s KV heads",
                    number,
                    self.num_kv_heads,
                )
        return self._prefill

    def _decode_rows(self, query: Tensor, step: _Step) -> Rows:
        kept = self._kept
        if kept is None or kept.same != step.same or kept.steps >= self._attention.decode.reuse:
            q = self._by_head(query[: len(step.batch.seq_lens)]).float() * self.scale
            selection = select_decode(self._attention.decode, step.batch, q, self._bounds)  # type: ignore[arg-type]
            rows = decode_rows(step.batch, selection, self.num_kv_heads)
            kept = self._kept = _Kept(step.same, rows, selection.counts, 0)
        kept.steps += 1
        rows = replace(kept.rows, seq_lens=decode_seq_lens(step.batch, kept.counts))
        self._count(rows, step.batch)
        return rows

    def _prefill_rows(self, query: Tensor, step: _Step, selector: PrefillSelector) -> Rows:
        batch, heads = step.batch, self.num_kv_heads
        parts = []
        for request, (start, end) in enumerate(
            zip(batch.query_starts[:-1], batch.query_starts[1:], strict=True)
        ):
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
                    self._by_head(query[start:end]),
                    self._bounds,  # type: ignore[arg-type]
                    segments=step.segments[request],
                    scale=self.scale,
                )
            )
        rows = joined(parts)
        self._count(rows, batch)
        return rows

    def _by_head(self, query: Tensor) -> Tensor:
        """[num_tokens, num_kv_heads, group_size, head_dim]."""
        return query.view(-1, self.num_kv_heads, self.num_queries_per_kv, self.head_size)

    def _count(self, rows: Rows, batch: Batch) -> None:
        """Each query counts the tokens before it in its row, and in its whole sequence."""
        queries = rows.query_starts.diff().long()
        self.tokens_read += int((queries * (rows.seq_lens - (queries - 1) / 2)).sum())
        for start, end, length in zip(
            batch.query_starts[:-1], batch.query_starts[1:], batch.seq_lens, strict=True
        ):
            new = end - start
            self.tokens_there += int(new * (length - (new - 1) / 2)) * self.num_kv_heads

    def _compute(
        self,
        layer: Any,
        query: Tensor,
        kv_cache: Tensor,
        metadata: Any,
        output: Tensor,
        rows: Rows,
    ) -> None:
        num_blocks, heads, block_size, _ = kv_cache.shape
        group, dim = self.num_queries_per_kv, self.head_size
        one_head = kv_cache.view(num_blocks * heads, 1, block_size * 2, -1)
        key_cache, value_cache = one_head.chunk(2, dim=2)
        asked = query[: metadata.num_actual_tokens].reshape(-1, group, dim)
        answer = output[: metadata.num_actual_tokens].view(-1, group, dim)
        said = answer
        if rows.places is not None:
            asked = asked.index_select(0, rows.places)
            said = torch.empty_like(asked)
        ops.cpu_attention_with_kv_cache(
            query=asked,
            key_cache=key_cache,
            value_cache=value_cache,
            output=said,
            query_start_loc=rows.query_starts,
            seq_lens=rows.seq_lens,
            scale=self.scale,
            causal=True,
            alibi_slopes=None,
            sliding_window=-1,
            block_table=rows.table,
            softcap=self.logits_soft_cap,
            scheduler_metadata=self._schedule(layer, query, metadata, rows),
            s_aux=None,
            dynamic_causal=None,
            k_scale=layer._k_scale_float,
            v_scale=layer._v_scale_float,
            kv_cache_dtype=self.kv_cache_dtype,
        )
        if rows.places is not None:
            back = torch.empty_like(rows.places).scatter_(
                0, rows.places, torch.arange(len(rows.places))
            )
            torch.index_select(said, 0, back, out=answer)

    def _schedule(self, layer: Any, query: Tensor, metadata: Any, rows: Rows) -> Tensor:
        """The kernel's plan for rows of these lengths; layers with the same share it."""
        step = _step(metadata, 0)
        key = rows.seq_lens.numpy().tobytes()
        if key not in step.schedules:
            step.schedules[key] = ops.cpu_attn_get_scheduler_metadata(
                num_reqs=len(rows.seq_lens),
                num_heads=self.num_queries_per_kv,
                num_kv_heads=1,
                head_dim=self.head_size,
                seq_lens=rows.seq_lens,
                dtype=query.dtype,
                query_start_loc=rows.query_starts,
                causal=True,
                sliding_window_size=-1,
                isa=layer.isa,
                enable_kv_split=envs.VLLM_CPU_ATTN_SPLIT_KV,
                dynamic_causal=None,
                kv_cache_dtype=self.kv_cache_dtype,
            )
        return step.schedules[key]


def _step(metadata: Any, block_size: int) -> _Step:
    """What the layers of a step share, kept on its metadata."""
    known: _Step | None = getattr(metadata, "gistree_step", None)
    if known is None:
        seq_lens = metadata.seq_lens.tolist()
        batch = Batch(
            query_starts=metadata.query_start_loc[: len(seq_lens) + 1].tolist(),
            seq_lens=seq_lens,
            block_table=metadata.block_table,
            block_size=block_size,
        )
        blocks = [(length - 1) // block_size for length in seq_lens]
        last = metadata.block_table[torch.arange(len(blocks)), torch.tensor(blocks)]
        known = _Step(batch, (*blocks, *last.tolist()))
        metadata.gistree_step = known
    return known


_said: set[tuple[object, ...]] = set()


def _say_once(what: str, *why: object) -> None:
    """Once for all layers that are alike."""
    if (what, *why) not in _said:
        _said.add((what, *why))
        log.warning(what, *why)
