"""Sparse attention in vLLM: its own CPU kernel with shorter block tables.

Only this file and ``serving/sparse_flash.py`` know vLLM's internals. The KV cache, prefix caching,
chunked prefill and batching stay vLLM's. Layers with sliding windows, ALiBi, sinks, a quantised or
a shared cache, and encoders, stay dense.
"""

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

from serving.bound_loops import COMPILED, scoring, taking_in
from serving.sparse_layer import SparseLayer, say_once, shared_step
from serving.sparse_plan import Rows
from serving.sparse_plugin import wanted


class SparseBackend(CPUAttentionBackend):  # type: ignore[misc]  # vLLM is untyped here
    """vLLM's CPU backend with another implementation of attention."""

    @staticmethod
    def get_impl_cls() -> type["SparseImpl"]:
        """The implementation."""
        return SparseImpl


class SparseImpl(CPUAttentionBackendImpl):  # type: ignore[misc]
    """Attention of one layer.

    Attributes:
        sparse: What it reads; None where it stays dense whatever is asked for.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As vLLM makes it; the selectors come from the environment."""
        super().__init__(*args, **options)
        kinds = {
            f"attention of type {self.attn_type}": self.attn_type != AttentionType.DECODER,
            "a sliding window": self.sliding_window != -1,
            "ALiBi": self.alibi_slopes is not None,
            "sinks": self.sinks is not None,
            f"a KV cache in {self.kv_cache_dtype}": self.is_fp8_kv_cache,
            "another layer's KV cache": self.kv_sharing_target_layer_name is not None,
        }
        uncovered = [kind for kind, is_so in kinds.items() if is_so]
        self.sparse: SparseLayer | None = None
        if uncovered:
            say_once("layers with %s stay dense: no selector covers them", ", ".join(uncovered))
            return
        if COMPILED:
            scoring()
            taking_in()
        self.sparse = SparseLayer(
            wanted(),
            num_kv_heads=self.num_kv_heads,
            group_size=self.num_queries_per_kv,
            head_dim=self.head_size,
            scale=self.scale,
        )

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
        if self.sparse is not None:
            num_blocks, _, block_size, _ = kv_cache.shape
            self.sparse.write(key, slot_mapping, num_blocks=num_blocks, block_size=block_size)

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
        rows = None
        if (
            self.sparse is not None
            and attn_metadata is not None
            and attn_metadata.causal
            and attn_metadata.dynamic_causal is None
        ):
            step = shared_step(attn_metadata, kv_cache.shape[2])
            rows = self.sparse.rows(layer.layer_name, query, step)
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
            torch.index_select(said, 0, rows.back(), out=answer)

    def _schedule(self, layer: Any, query: Tensor, metadata: Any, rows: Rows) -> Tensor:
        """The kernel's plan for rows of these lengths; layers with the same share it."""
        schedules = shared_step(metadata, 0).schedules
        key = rows.seq_lens.numpy().tobytes()
        if key not in schedules:
            schedules[key] = ops.cpu_attn_get_scheduler_metadata(
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
        return schedules[key]
