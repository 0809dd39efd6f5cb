import pytest
from fakes import HashingEmbedder

from retrieval.support import OFF_TOPIC, support

LAMP = "The keeper lit the lamp at dusk. It burned whale oil until 1861."


def test_a_question_of_the_matter_scores_higher_than_one_of_another():
    near = support("When did whale oil burn?", [LAMP], HashingEmbedder())
    far = support("Which lattice confines quarks?", [LAMP], HashingEmbedder())
    assert near > far


def test_the_best_passage_counts_and_none_is_zero():
    goats = support("whale oil", ["Goats eat hay."], HashingEmbedder())
    assert support("whale oil", ["Goats eat hay.", LAMP], HashingEmbedder()) > goats
    assert support("whale oil", [], HashingEmbedder()) == 0.0
    assert support("whale oil", ["  "], HashingEmbedder()) == 0.0


@pytest.mark.slow
def test_the_real_embedder_tells_matter_from_matter(minilm_files):
    from retrieval.onnx_embedder import OnnxEmbedder

    embedder = OnnxEmbedder(*minilm_files, "minilm", num_threads=2)
    assert support("What did the lighthouse lamp burn?", [LAMP], embedder) > OFF_TOPIC
    assert support("Who won the 1998 World Cup final?", [LAMP], embedder) < OFF_TOPIC
