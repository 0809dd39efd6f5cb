"""Sparse attention on NVIDIA GPUs: FlashAttention with shorter block tables. Not run on any yet.

The same selection as on the CPU. The cache is asked for with each head's part of a block together
(vLLM's layout LBHNC), so that block ``b`` of head ``h`` is block ``b * num_kv_heads + h`` of a
cache of one head, by strides alone. Where another back end or a connector wants another layout, the
KV heads of a request share one selection. What was tested, on a CPU, is everything up to the call
of the kernel, against one of the same arguments in plain torch
(``tests/vllm_real/test_sparse_flash.py``); so it is used only where ``gpu=1`` asks for it.
"""

from typing import Any

import torch
from torch import Tensor
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType
from vllm.v1.attention.backends import fa_utils
from vllm.v1.attention.backends.flash_attn import (
    FlashAttentionBackend,
    FlashAttentionImpl,
    FlashAttentionMetadata,
    FlashAttentionMetadataBuilder,
)
from vllm.v1.kv_cache_interface import KVCacheLayout

from serving.sparse_layer import SparseLayer, say_once, shared_step
from serving.sparse_plan import Rows
from serving.sparse_plugin import wanted


class SparseFlashBackend(FlashAttentionBackend):  # type: ignore[misc]  # vLLM is untyped here
    """vLLM's FlashAttention with another implementation and a head-major cache."""

    @staticmethod
    def get_impl_cls() -> type["SparseFlashImpl"]:
        """The implementation."""
        return SparseFlashImpl

    @staticmethod
    def get_builder_cls() -> type["SparseFlashBuilder"]:
        """The metadata's builder."""
        return SparseFlashBuilder

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[KVCacheLayout, ...]:
        """That in which one head's part of a block is a block itself, before all others."""
        others = (layout for layout in KVCacheLayout if layout is not KVCacheLayout.LBHNC)
        return (KVCacheLayout.LBHNC, *others)


class SparseFlashBuilder(FlashAttentionMetadataBuilder):  # type: ignore[misc]
    """vLLM's metadata, with attention outside CUDA graphs: what is selected changes."""

    @classmethod
    def get_cudagraph_support(cls, *args: Any, **options: Any) -> AttentionCGSupport:
        """None; graphs of the parts between attention go on working."""
        return AttentionCGSupport.NEVER


class SparseFlashImpl(FlashAttentionImpl):  # type: ignore[misc]
    """Attention of one layer.

    Attributes:
        sparse: What it reads; None where it stays dense whatever is asked for.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As vLLM makes it; the selectors come from the environment."""
        super().__init__(*args, **options)
        plain = ("auto", "float16", "bfloat16")
        kinds = {
            f"attention of type {self.attn_type}": self.attn_type != AttentionType.DECODER,
            "a sliding window": self.sliding_window != (-1, -1),
            "ALiBi": self.alibi_slopes is not None,
            "sinks": self.sinks is not None,
            "context parallelism": self.dcp_world_size != 1,
            f"a KV cache in {self.kv_cache_dtype}": self.kv_cache_dtype not in plain,
            "another layer's KV cache": self.kv_sharing_target_layer_name is not None,
        }
        uncovered = [kind for kind, is_so in kinds.items() if is_so]
        self.sparse: SparseLayer | None = None
        if uncovered:
            say_once("layers with %s stay dense: no selector covers them", ", ".join(uncovered))
            return
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
            if not _by_heads(kv_cache):
                self.sparse.share()
            with key.device:  # where what is planned is made
                self.sparse.write(key, slot_mapping, num_blocks=num_blocks, block_size=block_size)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: FlashAttentionMetadata | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """Attention, sparse where it pays and dense elsewhere; shapes as in vLLM's own."""
        if (
            self.sparse is not None
            and attn_metadata is not None
            and attn_metadata.causal is True
            and attn_metadata.mm_prefix_query_range_tensor is None
            and attn_metadata.rswa_prefix_lens is None
        ):
            with query.device:
                step = shared_step(attn_metadata, kv_cache.shape[2])
                rows = self.sparse.rows(layer.layer_name, query, step)
                if rows is not None:
                    self._compute(query[: attn_metadata.num_actual_tokens], kv_cache, output, rows)
                    return output
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

    def _compute(self, query: Tensor, kv_cache: Tensor, output: Tensor, rows: Rows) -> None:
        num_blocks, heads, block_size, width = kv_cache.shape
        group, dim = self.num_queries_per_kv, self.head_size
        if self.sparse is not None and self.sparse.shared:
            group *= heads
            laid = kv_cache.transpose(1, 2)
        else:
            laid = kv_cache.view(num_blocks * heads, block_size, 1, width)
        key_cache, value_cache = laid.split(dim, dim=-1)
        asked = query.reshape(-1, group, dim)
        answer = output[: len(query)].view(-1, group, dim)
        if rows.places is not None:
            asked = asked.index_select(0, rows.places)
        said = torch.empty_like(asked)
        fa_utils.flash_attn_varlen_func(
            q=asked,
            k=key_cache,
            v=value_cache,
            out=said,
            cu_seqlens_q=rows.query_starts,
            max_seqlen_q=int(rows.query_starts.diff().max()),
            seqused_k=rows.seq_lens,
            max_seqlen_k=int(rows.seq_lens.max()),
            softmax_scale=self.scale,
            causal=True,
            block_table=rows.table,
            softcap=self.logits_soft_cap,
            fa_version=self.vllm_flash_attn_version,
        )
        answer.copy_(said if rows.places is None else said.index_select(0, rows.back()))


def _by_heads(kv_cache: Tensor) -> bool:
    """Whether one head's part of a block is a block by itself; else a selection is shared."""
    if kv_cache.stride(0) == kv_cache.shape[1] * kv_cache.stride(1):
        return True
    say_once("the KV cache does not lie head by head: all KV heads read the same blocks")
    return False
