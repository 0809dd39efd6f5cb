import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
import pytest
from fakes import HashingEmbedder

from agents.support import Evidence, Supporter
from memory.document import Span

SENTENCES = (
    "Ahab lost his leg to the white whale.",
    "Starbuck was the chief mate.",
    "The whale was white, and it was feared.",
    "Ahab paced the deck at night.",
    "In 1841 the ship left port with 30 men.",
)
EVIDENCE = [Evidence("d", Span(i * 100, i * 100 + len(s)), s) for i, s in enumerate(SENTENCES)]


def support(question: str, claim: str) -> list[str]:
    found = Supporter().support(question, claim, EVIDENCE, HashingEmbedder())
    return [piece.text for piece, _ in found]


def test_a_name_is_cited_where_the_question_is_spoken_of():
    assert support("Who lost a leg to the whale?", "Ahab")[0] == SENTENCES[0]
    assert support("Who paced the deck?", "Ahab.")[0] == SENTENCES[3]


def test_a_claim_of_two_parts_gets_two_places():
    claim = "Starbuck was mate, and the ship left port in 1841."
    assert set(support("Who was mate and when did they leave?", claim)) == {
        SENTENCES[1],
        SENTENCES[4],
    }


def test_a_claim_that_shares_nothing_is_not_borne_out():
    assert support("Who was the cook?", "Fleece prepared pancakes") == []


def test_a_wrong_number_is_never_borne_out():
    assert support("When did the ship leave port?", "The ship left port in 1851.") == []
    assert support("How many men?", "31 men") == []
    assert support("How many men?", "3 men") == []
    assert support("How many men?", "30 men")[0] == SENTENCES[4]


@pytest.mark.parametrize(
    ("sentence", "question", "claim"),
    [
        ("Joss pulled eleven sailors from the water.", "How many sailors?", "11 sailors."),
        ("Joss pulled 11 sailors from the water.", "How many sailors?", "Eleven."),
        ("On the ninth of March a storm came.", "When did the storm come?", "March 9."),
        ("On the 9th of March a storm came.", "When did the storm come?", "On 9 March."),
        ("The owner paid 1,200 dollars.", "What did the owner pay?", "$1200"),
        ("The owner paid twelve hundred dollars.", "What did the owner pay?", "1,200 dollars"),
        ("The lamp burned whale oil.", "What did the lamp burn?", "Whale oil [3]."),
        ("The lamp burned whale oil.", "What did the lamp burn?", "Whale oil (page 7)."),
        ("The lamp burned whale oil.", "What did the lamp burn?", "2) Whale oil."),
    ],
)
def test_a_number_may_be_written_otherwise_and_a_mark_is_none(sentence, question, claim):
    evidence = [*EVIDENCE, Evidence("d", Span(900, 900 + len(sentence)), sentence)]
    found = Supporter().support(question, claim, evidence, HashingEmbedder())
    assert found[0][0].text == sentence


def test_a_bare_yes_or_no_says_what_the_question_does():
    assert support("Was Starbuck the chief mate?", "Yes.")[0] == SENTENCES[1]
    assert support("Did Ahab pace the deck at night?", "No")[0] == SENTENCES[3]
    assert support("Have tariffs on copper risen lately?", "Yes.") == []


def test_without_evidence_nothing_is_borne_out():
    assert Supporter().support("q", "claim", [], HashingEmbedder()) == []
