"""The backend for GPUs up to the call of its kernel, with a kernel of plain torch, on the CPU."""

import warnings
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
with warnings.catch_warnings():  # vLLM's imports are full of them
    warnings.simplefilter("ignore")
    pytest.importorskip("vllm", reason="needs vLLM; make test-vllm")
    import torch
    from vllm.v1.attention.backends import fa_utils
    from vllm.v1.attention.backends.flash_attn import FlashAttentionImpl, FlashAttentionMetadata
    from vllm.v1.kv_cache_interface import KVCacheLayout

    from serving.sparse_flash import SparseFlashBackend, SparseFlashImpl

HEADS, GROUP, DIM, BLOCK, BLOCKS = 2, 3, 16, 16, 40
LAYER = SimpleNamespace(layer_name="model.layers.3.self_attn.attn")


def paged(
    *,
    q,
    k,
    v,
    out,
    cu_seqlens_q,
    max_seqlen_q,
    seqused_k,
    max_seqlen_k,
    softmax_scale,
    causal,
    block_table,
    softcap,
    fa_version,
):
    """What FlashAttention computes of these arguments, row by row."""
    assert causal
    assert softcap == 0
    assert int(cu_seqlens_q.diff().max()) == max_seqlen_q
    assert int(seqused_k.max()) == max_seqlen_k
    assert block_table.dtype == seqused_k.dtype == cu_seqlens_q.dtype == torch.int32
    for row in range(len(seqused_k)):
        start, end, length = (
            int(each) for each in (cu_seqlens_q[row], cu_seqlens_q[row + 1], seqused_k[row])
        )
        blocks = block_table[row, : -(-length // k.shape[1])].long()
        keys, values = k[blocks].flatten(0, 1)[:length], v[blocks].flatten(0, 1)[:length]
        for i in range(start, end):
            seen = length - (end - 1 - i)
            asked = q[i].unflatten(0, (keys.shape[1], -1))  # of each KV head
            scores = torch.einsum("hgd,nhd->hgn", asked, keys[:seen]) * softmax_scale
            found = torch.einsum("hgn,nhd->hgd", scores.softmax(-1), values[:seen])
            out[i] = found.flatten(0, 1)


def laid_out(layout):
    """A cache of one of two layers, [blocks, heads, block, 2 * dim] whatever lies beside what."""
    order = KVCacheLayout[layout].stride_order
    shape = [2, BLOCKS, HEADS, BLOCK, 2 * DIM]
    memory = torch.full([shape[axis] for axis in order], torch.nan)
    return memory.permute([order.index(axis) for axis in range(5)])[1]


@pytest.fixture
def made(monkeypatch):
    """A layer with one sequence in its cache, as vLLM lays it out."""

    def make(spec, length=300, *, layout="LBHNC"):
        monkeypatch.setenv("GISTREE_ATTENTION", spec)
        monkeypatch.setattr(fa_utils, "flash_attn_varlen_func", paged, raising=False)
        impl = SparseFlashImpl(HEADS * GROUP, DIM, DIM**-0.5, HEADS, None, None, "auto")
        random = torch.Generator().manual_seed(0)
        keys, values = torch.randn(2, length, HEADS, DIM, generator=random)
        table = torch.randperm(BLOCKS, generator=random)[: -(-length // BLOCK)]
        slots = table[torch.arange(length) // BLOCK] * BLOCK + torch.arange(length) % BLOCK
        cache = laid_out(layout)
        cache[slots // BLOCK, :, slots % BLOCK] = torch.cat([keys, values], -1)
        monkeypatch.setattr(FlashAttentionImpl, "do_kv_cache_update", lambda *_: None)
        impl.do_kv_cache_update(LAYER, keys, values, cache, slots)
        return impl, cache, keys, values, table.to(torch.int32).unsqueeze(0)

    return make


def answered(impl, cache, table, query, length):
    metadata = FlashAttentionMetadata(
        num_actual_tokens=len(query),
        max_query_len=len(query),
        query_start_loc=torch.tensor([0, len(query)], dtype=torch.int32),
        max_seq_len=length,
        seq_lens=torch.tensor([length], dtype=torch.int32),
        block_table=table,
        slot_mapping=torch.zeros(0, dtype=torch.int64),
    )
    output = torch.full_like(query, torch.nan)
    return impl.forward(LAYER, query, query, query, cache, metadata, output)


def dense(query, keys, values):
    scores = torch.einsum("qhgd,khd->hgqk", query.unflatten(1, (HEADS, GROUP)), keys) * DIM**-0.5
    first = len(keys) - len(query)
    after = torch.arange(len(keys)) > first + torch.arange(len(query)).view(-1, 1)
    weights = scores.masked_fill(after, -torch.inf).softmax(-1)
    return torch.einsum("hgqk,khd->qhgd", weights, values).flatten(1, 2)


LAYOUTS = [layout.name for layout in KVCacheLayout]
APART = ("LBHNC", "BHLNC")  # in these each head's part of a block can be a block by itself


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("new", [1, 2, 37, 130])
def test_with_room_for_everything_it_is_dense_attention(made, new, layout):
    spec = "quest:budget=4000;critiprefill:budget=4000,segment=32;dense_layers=0;from_tokens=0"
    impl, cache, keys, values, table = made(spec, layout=layout)
    assert impl.sparse.shared == (layout not in APART)
    query = torch.randn(new, HEADS * GROUP, DIM)
    found = answered(impl, cache, table, query, 300)
    torch.testing.assert_close(found, dense(query, keys, values), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", ["LBHNC", "LBNHC"])
@pytest.mark.parametrize("new", [1, 130])
def test_with_less_room_it_reads_less(made, new, layout):
    spec = "quest:budget=96,newest=16;critiprefill:budget=96,segment=32;from_tokens=0"
    impl, cache, _, _, table = made(spec, layout=layout)
    found = answered(impl, cache, table, torch.randn(new, HEADS * GROUP, DIM), 300)
    assert not found.isnan().any()
    assert impl.sparse.tokens_read < 0.6 * impl.sparse.tokens_there


def test_the_cache_is_asked_for_head_by_head_and_graphs_leave_attention_out():
    layouts = SparseFlashBackend.supported_kv_cache_layouts()
    assert layouts[0] == KVCacheLayout.LBHNC
    assert set(layouts) == set(KVCacheLayout)
    support = SparseFlashBackend.get_builder_cls().get_cudagraph_support(None, None)
    assert support.name == "NEVER"


@pytest.mark.parametrize("layout", ["LBHNC", "LBNHC"])
@pytest.mark.parametrize("head", range(HEADS))
def test_a_key_that_one_head_looks_for_is_read(made, head, layout):
    spec = "quest:budget=96,newest=16;dense_layers=0;from_tokens=0"
    impl, cache, keys, _, table = made(spec, layout=layout)
    place, sought = 133, torch.full((DIM,), 3.0)
    block = table[0, place // BLOCK]
    keys[place, head] = sought
    cache[block, head, place % BLOCK, :DIM] = sought
    cache[block, head, place % BLOCK, DIM:] = 50.0
    first = place // BLOCK * BLOCK
    slots = block * BLOCK + torch.arange(BLOCK)
    whole = keys[first : first + BLOCK]
    impl.do_kv_cache_update(LAYER, whole, whole, cache, slots)
    query = torch.randn(1, HEADS * GROUP, DIM) * 0.1
    query[0, head * GROUP : (head + 1) * GROUP] = 3.0
    found = answered(impl, cache, table, query, 300)
    assert impl.sparse.tokens_read < 0.5 * impl.sparse.tokens_there
    assert (found.unflatten(1, (HEADS, GROUP))[0, head] > 40).all()


@pytest.mark.parametrize("layout", ["LBHNC", "LBNHC"])
def test_sequences_of_unequal_length_read_their_own_blocks(made, layout):
    spec = "quest:budget=4000;dense_layers=0;from_tokens=0"
    impl, cache, keys, values, table = made(spec, layout=layout)
    query = torch.randn(2, HEADS * GROUP, DIM)
    lengths = [300, 41]
    metadata = FlashAttentionMetadata(
        num_actual_tokens=2,
        max_query_len=1,
        query_start_loc=torch.tensor([0, 1, 2], dtype=torch.int32),
        max_seq_len=300,
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        block_table=table.expand(2, -1),
        slot_mapping=torch.zeros(0, dtype=torch.int64),
    )
    output = torch.full_like(query, torch.nan)
    found = impl.forward(LAYER, query, query, query, cache, metadata, output)
    for row, length in enumerate(lengths):
        wanted = dense(query[row : row + 1], keys[:length], values[:length])
        torch.testing.assert_close(found[row : row + 1], wanted, atol=1e-5, rtol=1e-5)
    assert impl.sparse.shared == (layout not in APART)


@pytest.mark.parametrize("layout", ["LBHNC", "LBNHC"])
@pytest.mark.parametrize("head", range(HEADS))
def test_a_key_that_the_queries_of_a_prompt_look_for_is_read(made, head, layout):
    spec = "critiprefill:budget=96,segment=32;dense_layers=0;from_tokens=0"
    impl, cache, keys, _, table = made(spec, layout=layout)
    place, sought = 85, torch.full((DIM,), 3.0)
    block = table[0, place // BLOCK]
    keys[place, head] = sought
    cache[block, head, place % BLOCK, :DIM] = sought
    cache[block, head, place % BLOCK, DIM:] = 50.0
    first = place // BLOCK * BLOCK
    slots = block * BLOCK + torch.arange(BLOCK)
    impl.do_kv_cache_update(
        LAYER, keys[first : first + BLOCK], keys[first : first + BLOCK], cache, slots
    )
    query = torch.randn(64, HEADS * GROUP, DIM) * 0.1
    query[:, head * GROUP : (head + 1) * GROUP] = 3.0
    found = answered(impl, cache, table, query, 300)
    assert impl.sparse.tokens_read < 0.6 * impl.sparse.tokens_there
    assert (found.unflatten(1, (HEADS, GROUP))[:, head] > 40).all()


def test_a_layer_that_has_taken_in_keys_head_by_head_does_not_share_afterwards(made):
    impl, *_ = made("quest:budget=96,newest=16")
    with pytest.raises(ValueError, match="from its first key on"):
        impl.sparse.share()
