import math

import pytest
from desks import desk_of, document_of

from agents.answer import Answer
from agents.confirming import Confirmer
from agents.prompting import render
from agents.readers.oprag import OpragReader
from agents.steps import Confirmed
from serving.errors import BadReply
from serving.model import Choice, Usage
from serving.scripted import ScriptedLLM

LAMP = "The captain of the schooner Petrel was named Orlov. The reef lies north of the lamp."


class Judge(ScriptedLLM):
    """Says yes with a given probability."""

    def __init__(self, yes: float, ability="small"):
        super().__init__(["The captain was named Orlov."], ability=ability)
        self.yes = yes

    def choose(self, messages, options):
        self.seen.append(tuple(messages))
        of = {"yes": self.yes * 0.75, "Yes": self.yes * 0.25, "no": 1 - self.yes, "No": 1e-9}
        return Choice(tuple(math.log(of[option]) for option in options), Usage(9, 8, 1, 1))


def test_both_spellings_count():
    confirmation = Confirmer().confirm(Judge(0.8), "Who?", "passages", support=0.0)
    assert confirmation.log_odds == pytest.approx(math.log(0.8 / 0.2), abs=1e-3)


def test_a_well_borne_out_answer_needs_less_of_a_yes():
    confirmer = Confirmer(support_weight=2.0, least=2.0)
    judge = Judge(0.75)
    assert not confirmer.confirm(judge, "Who?", "passages", support=0.2).stands
    assert confirmer.confirm(judge, "Who?", "passages", support=0.9).stands


@pytest.mark.parametrize("ability", ["tiny", "large"])
def test_only_a_small_model_is_asked(ability):
    judge = Judge(0.5, ability)
    assert Confirmer().confirm(judge, "Who?", "passages", support=1.0) is None
    assert not judge.seen


def test_a_server_without_log_probabilities_holds_nothing_back():
    class Mute(ScriptedLLM):
        def choose(self, messages, options):
            raise BadReply("this server gives no log-probabilities")

    assert Confirmer().confirm(Mute([]), "Who?", "passages", support=1.0) is None


def read(model):
    desk = desk_of(model, document_of("The Lamp", LAMP), budget_tokens=100)
    return list(OpragReader().read(desk, "What was the captain's name?"))


def test_an_answer_that_the_model_does_not_stand_by_is_not_found():
    steps = read(Judge(0.02))
    answer = steps[-1]
    assert isinstance(answer, Answer)
    assert (answer.found, answer.citations) == (False, ())
    assert answer.nearest
    held = next(step for step in steps if isinstance(step, Confirmed))
    assert "held back" in str(held)
    assert answer.usage.calls == 2  # what it cost is counted


def test_an_answer_that_it_stands_by_is_shown():
    steps = read(Judge(0.98))
    assert steps[-1].found
    assert isinstance(steps[-2], Confirmed)


def test_the_prompt_is_the_answers_but_for_its_last_line():
    slots = {"passages": "[page 1]\nThe reef.", "question": "Where is the reef?"}
    answer, confirm = render("answer-small", **slots), render("confirm", **slots)
    assert answer[0] == confirm[0]
    shared = answer[1].content[: answer[1].content.index(slots["question"])]
    assert confirm[1].content.startswith(shared + slots["question"])
