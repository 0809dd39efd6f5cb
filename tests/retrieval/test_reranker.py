import importlib.util

import pytest

from retrieval.reranker import CrossEncoderReranker
from serving.errors import MissingExtra, ModelNotFound

INSTALLED = importlib.util.find_spec("sentence_transformers") is not None


@pytest.mark.skipif(INSTALLED, reason="the extra is installed")
def test_without_the_extra_its_install_line_is_named():
    with pytest.raises(MissingExtra, match=r"gistree\[sentence-transformers\]"):
        CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2")


def tiny(folder, num_labels, minilm_files):
    """A cross-encoder of random weights, saved as its makers save one."""
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra sentence-transformers"
    )
    pytest.importorskip("sentence_transformers", reason="needs the extra sentence-transformers")
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=num_labels,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_files[1].parent)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.extras
def test_each_passage_gets_one_score_and_the_same_one_alone(tmp_path, minilm_files):
    reranker = CrossEncoderReranker(tiny(tmp_path, 1, minilm_files), device="cpu")
    passages = ["The whale took it.", "Taxes are due. " * 400, "", "a\ud800b"]
    scores = reranker.scores("Who took the leg?", passages)
    assert len(scores) == 4
    assert len(set(scores)) > 1
    alone = [reranker.scores("Who took the leg?", [passage])[0] for passage in passages]
    assert scores == pytest.approx(alone, abs=1e-4)
    assert reranker.scores("Who?", []) == []


@pytest.mark.extras
def test_a_classifier_is_not_a_reranker(tmp_path, minilm_files):
    folder = tiny(tmp_path, 3, minilm_files)
    with pytest.raises(ModelNotFound, match="3 scores"):
        CrossEncoderReranker(folder, device="cpu")


@pytest.mark.extras
def test_an_unknown_model_is_named():
    pytest.importorskip("sentence_transformers", reason="needs the extra sentence-transformers")
    with pytest.raises(ModelNotFound, match="nowhere"):
        CrossEncoderReranker("nowhere/at-all", local_only=True)
