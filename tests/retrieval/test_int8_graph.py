import numpy as np

from retrieval import onnx_embedder
from retrieval.int8_graph import with_int8_products
from retrieval.onnx_embedder import OnnxEmbedder

TEXTS = [
    "The whale rose beside the boat, and Ahab stood up in the bow with his lance. " * 5,
    "Taxes are due in April.",
    "Кит поднялся рядом с лодкой.",
]


def test_vectors_in_int8_lie_next_to_those_in_float32(minilm_files, monkeypatch):
    vectors = []
    for multiplies_int8 in (True, False):
        monkeypatch.setattr(onnx_embedder, "multiplies_int8", lambda it=multiplies_int8: it)
        vectors.append(OnnxEmbedder(*minilm_files, "minilm-l6-v2-int8").embed(TEXTS))
    nearness = np.sum(vectors[0] * vectors[1], axis=1)
    assert nearness.min() > 0.975
    assert nearness.max() < 0.99999  # or nothing was changed


def test_what_the_graph_says_is_kept_but_for_its_products(minilm_files):
    model = minilm_files[0].read_bytes()
    rewritten = with_int8_products(model)
    assert rewritten.count(b"MatMulInteger") == 36  # 6 layers of q, k, v, out, up and down
    assert rewritten.count(b"DynamicQuantizeLinear") == 24  # q, k and v have one input
    assert len(rewritten) - len(model) < 20_000


def test_a_model_without_int8_weights_comes_back_as_it_was(minilm_files):
    rewritten = with_int8_products(minilm_files[0].read_bytes())
    assert with_int8_products(rewritten) is rewritten
    assert with_int8_products(b"") == b""
