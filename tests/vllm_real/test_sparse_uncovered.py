"""What no selector covers stays dense in both back ends, and that is said once."""

import warnings
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
with warnings.catch_warnings():  # vLLM's imports are full of them
    warnings.simplefilter("ignore")
    pytest.importorskip("vllm", reason="needs vLLM; make test-vllm")
    import torch
    from vllm.v1.attention.backends import cpu_attn, flash_attn
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    from serving import sparse_layer, sparse_plugin
    from serving.sparse_backend import SparseImpl
    from serving.sparse_flash import SparseFlashImpl

HEADS, GROUP, DIM = 2, 3, 16
COVERED = {
    "alibi_slopes": None,
    "sliding_window": None,
    "kv_cache_dtype": "auto",
    "attn_type": "decoder",
}
UNCOVERED = {
    "a sliding window": {"sliding_window": 512},
    "a KV cache in fp8": {"kv_cache_dtype": "fp8"},
    "attention of type encoder": {"attn_type": "encoder"},
    "attention of type encoder_only": {"attn_type": "encoder_only"},
    "attention of type encoder_decoder": {"attn_type": "encoder_decoder"},
    "ALiBi": {"alibi_slopes": [0.5] * (HEADS * GROUP)},
    "sinks": {"sinks": torch.zeros(HEADS * GROUP)},
    "another layer's KV cache": {"kv_sharing_target_layer_name": "model.layers.1.self_attn.attn"},
    "a sliding window, ALiBi": {"sliding_window": 512, "alibi_slopes": [0.5] * (HEADS * GROUP)},
}


@pytest.fixture(params=[SparseImpl, SparseFlashImpl])
def layer(request, monkeypatch):
    """Makes a layer of either back end, on a machine that could do all that vLLM can."""
    monkeypatch.setenv("GISTREE_ATTENTION", "quest")
    monkeypatch.setattr(sparse_layer, "_said", set())
    config = SimpleNamespace(model_config=SimpleNamespace(dtype=torch.float32))
    monkeypatch.setattr(cpu_attn, "get_current_vllm_config", lambda: config)
    for able in ("flash_attn_supports_kv_cache_dtype", "flash_attn_supports_sinks"):
        monkeypatch.setattr(flash_attn, able, lambda *_, **__: True, raising=False)

    def make(**differs):
        return request.param(HEADS * GROUP, DIM, 0.25, HEADS, **{**COVERED, **differs})

    return make


@pytest.mark.parametrize("kind", UNCOVERED)
def test_what_no_selector_covers_stays_dense_and_says_so_once(layer, caplog, kind):
    layers = [layer(**UNCOVERED[kind]) for _ in range(3)]
    assert all(made.sparse is None for made in layers)
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"layers with {kind} stay dense: no selector covers them"]
    assert layer().sparse is not None


def test_another_back_end_of_vllm_is_its_own_and_that_it_is_dense_is_said_once(monkeypatch, caplog):
    monkeypatch.setenv("GISTREE_ATTENTION", "quest")
    monkeypatch.setattr(sparse_layer, "_said", set())
    ours = [AttentionBackendEnum[name] for name in ("CPU_ATTN", "CPU_MLA", "AMX_MLA")]
    before = [backend.get_path() for backend in ours]
    sparse_plugin.register()
    try:
        for _ in range(2):
            assert AttentionBackendEnum.CPU_MLA.get_class().__name__ == "CPUMLABackend"
        assert AttentionBackendEnum.CPU_ATTN.get_class().__name__ == "SparseBackend"
    finally:
        for backend, path in zip(ours, before, strict=True):
            backend.clear_override()
            if backend.get_path() != path:
                register_backend(backend, path)
    said = [r.getMessage() for r in caplog.records if "stays dense" in r.getMessage()]
    assert said == ["attention stays dense: vLLM takes CPU_MLA, which no selector covers"]
