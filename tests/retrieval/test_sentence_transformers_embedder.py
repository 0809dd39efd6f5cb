import importlib.util
import json
import shutil

import numpy as np
import pytest

from retrieval.onnx_embedder import OnnxEmbedder
from retrieval.sentence_transformers_embedder import SentenceTransformersEmbedder
from serving.errors import MissingExtra, ModelNotFound

INSTALLED = importlib.util.find_spec("sentence_transformers") is not None


@pytest.mark.skipif(INSTALLED, reason="the extra is installed")
def test_without_the_extra_its_install_line_is_named():
    with pytest.raises(MissingExtra, match=r"gistree\[sentence-transformers\]"):
        SentenceTransformersEmbedder("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def folder(minilm_files):
    pytest.importorskip("sentence_transformers", reason="needs the extra sentence-transformers")
    return minilm_files[1].parent


@pytest.mark.extras
def test_it_makes_the_vectors_that_the_onnx_model_makes(folder, minilm_files):
    texts = ["The white whale took his leg.", "Taxes are due in April."]
    ours = OnnxEmbedder(*minilm_files, "minilm-l6-v2-int8")
    theirs = SentenceTransformersEmbedder(folder, device="cpu")
    assert theirs.dim == ours.dim == 384
    assert (theirs.embed(texts) * ours.embed(texts)).sum(1).min() > 0.97
    assert theirs.embed([]).shape == (0, 384)
    assert theirs.token_counts([*texts, "whale " * 700]) == ours.token_counts(
        [*texts, "whale " * 700]
    )
    assert np.isfinite(theirs.embed(["a\ud800b\x00"])).all()


@pytest.mark.extras
def test_the_models_own_prompts_go_before_queries_and_passages(folder, tmp_path):
    prompted = tmp_path / "prompted"
    shutil.copytree(folder, prompted)
    settings = json.loads((prompted / "config_sentence_transformers.json").read_text())
    settings["prompts"] = {"query": "query: ", "passage": "passage: "}
    (prompted / "config_sentence_transformers.json").write_text(json.dumps(settings))
    plain = SentenceTransformersEmbedder(folder, device="cpu")
    ours = SentenceTransformersEmbedder(prompted, device="cpu")
    assert ours.name != plain.name
    assert ours.embed_query("whale") == pytest.approx(plain.embed_query("query: whale"), abs=1e-5)
    assert ours.embed(["whale"]) == pytest.approx(plain.embed(["passage: whale"]), abs=1e-5)


@pytest.mark.extras
def test_an_unknown_model_is_named(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra sentence-transformers")
    with pytest.raises(ModelNotFound, match="nowhere"):
        SentenceTransformersEmbedder("nowhere/at-all", local_only=True)
