import pytest
from desks import desk_of, document_of
from fake_models import ObligingLLM

from agents.answer import Answer
from agents.question_kind import KINDS
from agents.readers.auto import AutoReader
from agents.routing import Machine, Task, route
from agents.steps import Degraded, Noted, Routed
from memory.memories import finished

SLOW = Machine(ability="small", window=8_192, tokens_per_s=30.0, budget_tokens=700)
FAST = Machine(ability="large", window=32_768, tokens_per_s=3_000.0, budget_tokens=4_000)
SENTENCE = "The schooner Petrel struck the reef, and Joss rowed out to her. "


def taken(kind, tokens, machine, *, patience_s=300.0):
    return route(Task(kind, tokens, 1, patience_s), machine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("machine", [SLOW, FAST])
def test_what_fits_the_budget_is_read_whole(kind, machine):
    assert taken(kind, 500, machine).reader == "full"


@pytest.mark.parametrize(
    ("kind", "slow", "fast"),
    [
        ("look-up", "oprag", "oprag"),
        ("multi-hop", "oprag", "agent"),
        ("compare", "oprag", "agent"),
        ("summarise", "margins:max_parts=9", "margins"),
        ("count", "oprag", "notes"),
        ("list", "oprag", "notes"),
    ],
)
def test_a_novel_is_read_as_far_as_the_patience_reaches(kind, slow, fast):
    assert taken(kind, 110_000, SLOW).reader == slow
    assert taken(kind, 110_000, FAST).reader == fast


def test_what_was_told_in_short_before_is_summarised_from_that():
    short = route(Task("summarise", 110_000, 1, 300.0, gists_kept=True), SLOW)
    assert short.reader == "gist"
    assert short.budget_tokens == 4_000
    assert "told in short before" in short.why
    read = route(Task("summarise", 110_000, 1, 7_200.0, gists_kept=True), SLOW)
    assert read.reader == "margins"  # there is time for reading all of it


def test_a_kept_memory_is_seen():
    lamp = document_of("The Lamp", SENTENCE * 100)
    desk = desk_of(ObligingLLM(), lamp)
    reader = AutoReader(patience_s=30)
    assert next(iter(reader.read(desk, "Summarise the tale."))).reader.startswith("margins")
    finished(desk.memories.gists(lamp.id))
    assert next(iter(reader.read(desk, "Summarise the tale."))).reader == "gist"
    assert next(iter(reader.read(desk, "Who rowed out?"))).reader == "oprag"


def test_a_patient_person_gets_the_whole_novel_read():
    assert taken("count", 110_000, SLOW, patience_s=7_200).reader == "notes"
    assert "about 86 minutes" in taken("count", 110_000, SLOW, patience_s=7_200).why
    assert "would take about 86 minutes" in taken("count", 110_000, SLOW).why


def test_a_question_of_several_places_gets_more_to_read_but_never_more_than_fits():
    assert taken("multi-hop", 110_000, SLOW).budget_tokens == 1_400
    tight = Machine(ability="small", window=2_000, tokens_per_s=30.0, budget_tokens=700)
    assert taken("multi-hop", 110_000, tight).budget_tokens == 1_000


def test_the_choice_is_told_and_the_steps_of_the_reader_follow():
    model = ObligingLLM()
    lamp = document_of("The Lamp", SENTENCE * 100)
    steps = list(AutoReader().read(desk_of(model, lamp), "Summarise the tale."))
    routed = steps[0]
    assert isinstance(routed, Routed)
    assert (routed.reader, routed.kind) == ("full", "summarise")
    steps = list(AutoReader(patience_s=30).read(desk_of(model, lamp), "Summarise the tale."))
    assert steps[0].reader.startswith("margins")
    assert any(isinstance(step, Noted) for step in steps)
    assert steps[-1].reader == "margins"


@pytest.mark.parametrize(("ask_model", "calls"), [("never", 2), ("unsure", 3), ("always", 3)])
def test_the_model_may_be_asked_for_the_kind(ask_model, calls):
    model = ObligingLLM()
    lamp = document_of("The Lamp", SENTENCE * 100)
    desk = desk_of(model, lamp)
    answer = list(AutoReader(ask_model=ask_model).read(desk, "Who rowed out to the Petrel?"))[-1]
    assert answer.usage == model.spent
    assert model.spent.calls == calls


def test_the_pace_that_was_measured_decides():
    assert taken("summarise", 20_000, Machine("small", 8_192, 0.0, 700)).reader != "margins"
    assert taken("summarise", 20_000, Machine("small", 8_192, 900.0, 700)).reader == "margins"


def test_a_document_that_proves_too_long_is_searched_instead():
    text = SENTENCE * 40 + "a " * 1_000 + SENTENCE * 200  # dense between the places sampled
    model = ObligingLLM(context_window=4_600)
    desk = desk_of(model, document_of("Dense", text))
    steps = list(AutoReader(patience_s=1e6).read(desk, "Summarise the tale."))
    assert steps[0].reader == "full"
    assert any(isinstance(step, Degraded) and "window" in step.why for step in steps)
    assert isinstance(steps[-1], Answer)
    assert steps[-1].usage == model.spent
