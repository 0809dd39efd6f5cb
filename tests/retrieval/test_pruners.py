import math
from itertools import pairwise

import pytest
from fakes import HashingEmbedder

from memory.document import Span
from retrieval.pruners.evidence import EvidencePruner
from retrieval.sentence_scores import score_sentences
from serving.plugins import load, names

LAMP = (
    "The keeper lit the lamp at dusk. It burned whale oil until 1861. "
    "Gulls slept on the roof. The stairs creaked in the wind."
)
GOATS = "Goats ate the hay. The farmer mended his fence on Monday."
QUESTION = "Which lamp oil burned?"


def narrow(**more):
    """Judges sentences by what they say themselves."""
    return EvidencePruner(passage_meaning=0.0, passage_words=0.0, place=0.0, **more)


def kept(question, passages, pruner=None, embedder=None):
    spans = (pruner or EvidencePruner()).prune(
        question, passages, headers=[""] * len(passages), embedder=embedder or HashingEmbedder()
    )
    return [[span.of(text) for span in each] for each, text in zip(spans, passages, strict=True)]


def test_keeps_the_sentences_that_answer_and_drops_the_others():
    lamp, goats = kept(QUESTION, [LAMP, GOATS], narrow(threshold=0.6, lift=0.0))
    assert lamp == ["The keeper lit the lamp at dusk. It burned whale oil until 1861."]
    assert goats == []


def test_a_neighbour_is_kept_for_coherence():
    question = "Until when was whale oil burned?"
    assert kept(question, [LAMP], narrow(threshold=0.5, lift=0.0)) == [
        ["It burned whale oil until 1861."]
    ]
    ((with_neighbours,),) = kept(question, [LAMP], narrow(threshold=0.5, lift=0.9))
    assert with_neighbours == LAMP[: LAMP.index(" The stairs")]


def test_a_good_passage_keeps_its_weaker_sentences():
    weak = "Gulls slept on the roof."
    assert weak not in kept(QUESTION, [LAMP, GOATS], narrow(lift=0.0))[0][0]
    assert weak in kept(QUESTION, [LAMP, GOATS])[0][0]


def test_what_stands_first_counts_for_more():
    first, second = kept("Goats?", [GOATS, GOATS], EvidencePruner(threshold=0.9, place=9.0))
    assert first
    assert not second


def test_an_instruction_before_the_question_does_not_change_what_is_kept():
    asked = f"Mark the parts of this text that answer the following: {QUESTION} Say it in a word."
    plain = f"{QUESTION} Say it in a word."
    passages = [LAMP, GOATS]
    assert kept(asked, passages, narrow()) == kept(plain, passages, narrow())


def test_keeps_nothing_where_nothing_helps():
    assert kept("Quantum chromodynamics lattice?", [LAMP, GOATS], EvidencePruner(floor=0.9)) == [
        [],
        [],
    ]


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_spans_ascend_without_overlap_and_a_higher_threshold_keeps_less(threshold):
    passages = [LAMP, GOATS, "", "  \n ", LAMP]
    pruner = EvidencePruner(threshold=threshold)
    looser = EvidencePruner(threshold=max(0.0, threshold - 0.3))
    spans = pruner.prune(QUESTION, passages, headers=[""] * 5, embedder=HashingEmbedder())
    more = looser.prune(QUESTION, passages, headers=[""] * 5, embedder=HashingEmbedder())
    for each, wider, text in zip(spans, more, passages, strict=True):
        assert all(a.end < b.start for a, b in pairwise(each))
        assert all(0 <= s.start < s.end <= len(text) for s in each)
        assert all(any(w.contains(s) for w in wider) for s in each)
    assert spans[2] == spans[3] == []
    if threshold == 0.0:
        assert spans[0] == [Span(0, len(LAMP))]


def test_no_passages_or_no_words_are_no_trouble():
    assert kept(QUESTION, []) == []
    assert len(kept("???", [LAMP])) == 1


def test_works_in_a_script_without_spaces():
    text = "灯塔的灯油是鲸油。海鸥在屋顶上睡觉。楼梯在风中吱吱作响。"
    (found,) = kept("灯塔用什么灯油？", [text], narrow(threshold=0.7, lift=0.0))
    assert found == ["灯塔的灯油是鲸油。"]


def test_embeds_no_more_sentences_than_allowed():
    class Counting(HashingEmbedder):
        embedded = 0

        def embed(self, texts):
            self.embedded += len(texts)
            return super().embed(texts)

    embedder = Counting()
    spans = EvidencePruner(max_embedded=3).prune(
        QUESTION, [LAMP, GOATS], headers=["", ""], embedder=embedder
    )
    assert embedder.embedded == 3
    assert len(spans) == 2


def test_word_shares_by_hand():
    scores = score_sentences(
        "lamp oil", ["The lamp. The oil lamp.", "A goat."], HashingEmbedder(), max_embedded=9
    )
    lamp, oil = math.log(1 + 3 / 2), math.log(1 + 3 / 1)
    assert scores.words == pytest.approx([lamp / (lamp + oil), 1.0, 0.0])
    assert scores.passage_words == pytest.approx([1.0, 1.0, 0.0])
    assert scores.passage.tolist() == [0, 0, 1]


def test_every_pruner_that_needs_no_extra_obeys_the_contract():
    assert "evidence" in names("retrieval.pruners")
    assert load("retrieval.pruners", "evidence") is EvidencePruner
    with pytest.raises(TypeError):
        EvidencePruner(treshold=0.5)


@pytest.mark.slow
def test_with_the_real_embedder_the_answer_stays_and_most_of_the_rest_goes(minilm_files):
    from retrieval.onnx_embedder import OnnxEmbedder

    embedder = OnnxEmbedder(*minilm_files, "minilm", num_threads=2)
    question = "Which fuel did the lighthouse use?"
    lamp, goats = kept(question, [LAMP, GOATS], EvidencePruner(threshold=0.5), embedder)
    assert "whale oil" in " ".join(lamp)
    assert len(" ".join(goats)) < len(GOATS)
