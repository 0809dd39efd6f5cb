"""What of a query is looked for by its meaning."""

import pytest

from retrieval.query import core


def test_an_instruction_before_a_colon_is_left_out_but_not_what_it_names():
    asked = (
        'Highlight the parts of this contract related to "Insurance" that a lawyer should see. '
        "Details: Is there a requirement for insurance?"
    )
    assert core(asked) == "Insurance Is there a requirement for insurance?"
    asked = "Does the contract entail, contradict, or not mention: Some duties survive its end."
    assert core(asked) == "Some duties survive its end."


@pytest.mark.parametrize(
    "query",
    [
        "Who lost a leg to the whale?",
        "What did Ahab say of the whale: was it evil?",  # the rest leans on what stands before
        "Sapiens: what does it say about wheat and its farmers?",  # a subject, not an instruction
        'What does the book "Sapiens: A Brief History of Humankind" say about wheat?',
        "When does the train at 10:30 leave for the town by the sea?",
        "",
    ],
)
def test_other_queries_stay_whole(query):
    assert core(query) == query


def test_of_two_colons_the_last_with_enough_after_it_counts():
    asked = "Read this and answer briefly: what are the duties of the parties: all of them?"
    assert core(asked) == "what are the duties of the parties: all of them?"
