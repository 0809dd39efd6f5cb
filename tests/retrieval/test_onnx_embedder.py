import numpy as np
import pytest

from retrieval.onnx_embedder import OnnxEmbedder
from serving.errors import ModelNotFound


@pytest.fixture(scope="module")
def embedder(minilm_files):
    return OnnxEmbedder(*minilm_files, "minilm-l6-v2-int8")


def test_vectors_are_unit_float32_rows(embedder):
    vectors = embedder.embed(["A whale.", "", "Ein Wal, eine Frau, ein Schiff. " * 30])
    assert vectors.shape == (3, embedder.dim) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.token_counts([]) == []


def test_what_means_the_same_lies_nearer(embedder):
    cat, kitten, tax = embedder.embed(
        ["The cat sat on the mat.", "A kitten rested upon a rug.", "Taxes are due in April."]
    )
    assert cat @ kitten > cat @ tax + 0.2


def test_a_vector_does_not_depend_on_its_neighbours_in_the_batch(embedder):
    texts = [
        f"Chapter {n}. " + "The sea was calm and the crew was idle. " * n for n in range(1, 12)
    ]
    alone = np.stack([embedder.embed_query(text) for text in texts])
    assert np.abs(embedder.embed(texts) - alone).max() < 1e-3


def test_a_long_text_is_read_to_its_end(embedder):
    sea = "The sea was calm and the crew was idle. " * 40
    with_end = sea + "The treasurer hid the silver coins in the garden. " * 20
    plain, ended = embedder.embed([sea, with_end])
    treasure = embedder.embed_query("Where are the silver coins?")
    assert ended @ treasure > plain @ treasure + 0.1


def test_token_counts_go_past_the_window_and_leave_out_special_tokens(embedder):
    assert embedder.token_counts(["whale", "", "whale " * 700]) == [1, 0, 700]


def test_lone_surrogates_and_nul_are_embedded(embedder):
    assert np.isfinite(embedder.embed(["a\ud800b\x00c", "\udfff"])).all()
    assert embedder.token_counts(["\ud800"])[0] >= 0


def test_a_missing_model_says_how_to_fetch_it(tmp_path):
    with pytest.raises(ModelNotFound, match="gistree models fetch"):
        OnnxEmbedder(tmp_path / "no.onnx", tmp_path / "no.json", "minilm")


def test_a_damaged_model_says_how_to_fetch_it(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelNotFound, match="again"):
        OnnxEmbedder(tmp_path / "model.onnx", tmp_path / "tokenizer.json", "minilm")
