import json

import pytest
from desks import desk_of, document_of

from agents.readers.agent import AgentReader
from agents.steps import Called, Degraded
from serving.scripted import ScriptedLLM

PARTS = [
    "Mira lit the lamp in the tower every evening. Her brother was called Joss.",
    "Joss rowed out to the reef at dawn, and found a chest with a brass key in it.",
    "The brass key opened the chapel, where the bell of the Petrel hung. " + "It was cold. " * 60,
    "The bell of the Petrel was cast in Lübeck by one Anders Holm.",
]
TALE = "\n\n".join(PARTS)
QUESTION = "Who cast the bell behind the door that the key from the chest opened?"
YES, NO = 0, 2  # of yes, Yes, no, No


def call(tool, **arguments):
    return json.dumps({"tool": tool, **arguments})


def read(model, *, budget_tokens=80, tale=TALE, **options):
    desk = desk_of(model, document_of("The Lamp", tale), budget_tokens=budget_tokens)
    return list(AgentReader(**options).read(desk, QUESTION))


def tools(steps):
    return [step.tool for step in steps if isinstance(step, Called) and step.tool != "answer"]


def test_it_looks_until_it_has_seen_enough():
    model = ScriptedLLM(
        [call("grep", words="Petrel"), "Anders Holm cast the bell."], choices=[NO, YES, YES]
    )
    steps = read(model)
    assert tools(steps) == ["search", "grep"]
    assert "Anders Holm" in model.seen[-1][-1].content
    assert steps[-1].found
    assert steps[-1].usage.calls == 5


def test_it_may_say_itself_that_it_has_seen_enough():
    model = ScriptedLLM([call("answer"), "Anders Holm."], choices=[NO, YES])
    assert tools(read(model)) == ["search"]


def test_the_same_search_again_shows_more():
    again = call("search", query="bell Petrel")
    model = ScriptedLLM([again, again, "Anders Holm."], choices=[NO, NO, YES, YES])
    bells = [f"Bell number {n} rang. {'All was quiet again. ' * 12}" for n in range(12)]
    steps = read(model, budget_tokens=400, tale="\n\n".join(bells))
    results = [step.result for step in steps if isinstance(step, Called)][:3]
    assert len(results) == len(set(results)) == 3


def test_the_conversation_only_grows_at_its_end():
    model = ScriptedLLM(
        [call("grep", words="brass key"), call("outline"), "Holm."], choices=[NO, NO, YES, YES]
    )
    read(model)
    for before, after in zip(model.seen[:4], model.seen[1:5], strict=True):
        assert list(after[: len(before) - 1]) == list(before[:-1])
        shared = before[-1].content.rsplit("\n\n", 1)[0]
        assert after[len(before) - 1].content.startswith(shared)


def test_the_steps_are_bounded():
    words = ["Mira", "Joss", "reef", "bell", "key", "chapel", "dawn"]
    model = ScriptedLLM(
        [*(call("grep", words=word) for word in words[:3]), "Holm."], choices=[NO] * 3 + [YES]
    )
    steps = read(model, max_steps=4, gather_tokens=10_000)
    assert len(tools(steps)) == 4
    assert steps[-1].usage.calls == 8


def test_the_text_that_the_tools_show_is_bounded():
    model = ScriptedLLM(["Holm."])
    assert tools(read(model, gather_tokens=10)) == ["search"]


def test_a_wrong_call_is_handed_back_once():
    model = ScriptedLLM(
        [call("read", document=9), call("read", document=1), "Holm."], choices=[NO, YES, YES]
    )
    steps = read(model)
    assert tools(steps) == ["search", "read"]
    assert "document must be 1 to 1; got 9" in model.seen[2][-1].content


@pytest.mark.parametrize(
    "bad", [call("fly"), call("search", query=QUESTION), call("read", document=9), "[]", "{}"]
)
def test_two_wrong_calls_end_in_the_answer(bad):
    model = ScriptedLLM([bad, bad, "Anders Holm cast the bell."], choices=[NO, YES])

    # The script checks the form of replies; a backend that does not may let these through.
    steps = read(model)
    assert any(isinstance(step, Degraded) for step in steps)
    assert steps[-1].found


def test_results_are_fenced():
    model = ScriptedLLM([call("grep", words="key"), "Holm."], choices=[NO, YES, YES])
    read(model)
    results = [m.content for m in model.seen[-2][2:] if m.role == "user"]
    assert all(result.startswith("<<<\n") and "\n>>>" in result for result in results)
