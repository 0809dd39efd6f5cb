import json

import pytest
from desks import desk_of, document_of
from fake_models import ObligingLLM

from agents.ensemble import medoid
from agents.readers.oprag import OpragReader
from agents.steps import Assembled, Degraded, Drafting, Voted
from serving.scripted import ScriptedLLM

_FILLER = "Nothing else of note befell anybody there for a long while, says the chronicle. " * 5
TEXT = f"""The captain of the brig Swallow was a woman named Hald, and the schooner knew her.

{_FILLER}

The captain of the schooner Petrel was a man named Orlov.

{_FILLER}

The schooner was old.
"""
CONFIRMING = 1  # the call that every answer of a small model ends with
QUESTION = "Who was the captain of the schooner Petrel?"


def read(model, **options):
    lamp = document_of("The Lamp", TEXT)
    return list(OpragReader(**options).read(desk_of(model, lamp, budget_tokens=100), QUESTION))


def said(evidence, answer):
    return json.dumps({"evidence": evidence, "answer": answer})


def test_the_answer_follows_evidence_that_stands_in_the_passages():
    model = ScriptedLLM([said("a man named Orlov", "Orlov was the captain.")])
    answer = read(model, evidence_first=True)[-1]
    assert (answer.text, answer.found) == ("Orlov was the captain.", True)
    assert answer.usage.calls == 1 + CONFIRMING


def test_evidence_that_stands_nowhere_is_handed_back_once():
    model = ScriptedLLM(
        [said("the captain was Ahab", "Ahab."), said("a man named Orlov", "Orlov, the captain.")]
    )
    answer = read(model, evidence_first=True)[-1]
    assert answer.text == "Orlov, the captain."
    assert "does not stand in the passages" in model.seen[1][-1].content
    assert answer.usage.calls == 2 + CONFIRMING


def test_then_the_answer_comes_without_it():
    bad = said("the captain was Ahab", "Ahab.")
    model = ScriptedLLM([bad, bad, "The captain was Orlov."])
    steps = read(model, evidence_first=True)
    assert any(isinstance(step, Degraded) for step in steps)
    assert steps[-1].text == "The captain was Orlov."
    assert steps[-1].usage.calls == 3 + CONFIRMING


def test_no_evidence_is_no_answer():
    assert not read(ScriptedLLM([said("", "NOT FOUND")]), evidence_first=True)[-1].found


def test_the_draft_most_like_the_others_is_taken():
    replies = ["A woman named Hald.", "The captain was Orlov.", "It was the captain Orlov."]
    model = ScriptedLLM(replies)
    steps = read(model, votes=3)
    voted = next(step for step in steps if isinstance(step, Voted))
    assert voted.drafts == tuple(replies)
    assert steps[-1].text == replies[voted.chosen] != replies[0]
    assert steps[-1].usage.calls == 3 + CONFIRMING
    assert not any(isinstance(step, Drafting) for step in steps)
    assert len({call[-1].content for call in model.seen}) > 1
    assert sum(isinstance(step, Assembled) for step in steps) == 1


def test_a_vote_of_one_is_no_vote():
    steps = read(ScriptedLLM(["The captain was Orlov."]), votes=1)
    assert not any(isinstance(step, Voted) for step in steps)


@pytest.mark.parametrize("options", [{"votes": 2}, {"votes": 3, "evidence_first": True}])
def test_every_token_is_counted(options):
    model = ObligingLLM()
    assert read(model, **options)[-1].usage == model.spent


def test_the_medoid_of_equals_is_the_first():
    embedder = desk_of(ScriptedLLM([]), document_of("t", TEXT)).embedder
    assert medoid(["Orlov", "Orlov", "Orlov"], embedder) == 0
    assert medoid(["Hald", "Orlov", "Orlov"], embedder) == 1
