import json
from dataclasses import replace

import pytest
from desks import desk_of, document_of, memories_of
from fake_models import ObligingLLM

from agents.answer import Answer
from agents.readers.tree import TreeReader
from agents.steps import Degraded, Walked
from memory.options import MemoryOptions

NAMES = ("Adela", "Bertram", "Clothilde", "Dietmar", "Edith", "Fabian", "Gisela", "Hubert")
TEXT = "\n\n".join(
    f"On the {i + 2}nd day {name} went to the market of Ansty and bought {i + 11} red apples. "
    f"The apples of {name} were sweet, and the weather stayed as fine as anybody could wish. "
    f"In the evening {name} came home, slept for a long while and dreamt of the market."
    for i, name in enumerate(NAMES)
)
MARKET = document_of("The Market", TEXT)
QUESTION = "How many apples were bought at the market?"


class Walker(ObligingLLM):
    """Finds help only in parts that name somebody; a large one takes given parts."""

    def __init__(self, helps="", parts=(), **options):
        super().__init__(**options)
        self._helps, self._parts = helps, list(parts)

    def stream(self, messages, *, max_tokens, temperature=0.0, stop=(), schema=None):
        if schema is not None and "part" in schema.get("properties", {}) and self._parts:
            part = self._parts.pop(0)
            self._say = lambda _: json.dumps({"reason": f"try {part}", "part": part})
        completion = yield from super().stream(
            messages, max_tokens=max_tokens, temperature=temperature, stop=stop, schema=schema
        )
        self._say = None
        return completion

    def choose(self, messages, options):
        choice = super().choose(messages, options)
        if "piece of it" not in messages[-1].content:
            return choice
        part = messages[-1].content.split("<<<")[1].split(">>>")[0]
        helps = bool(self._helps) and self._helps in part
        scores = (-0.1 if (each.casefold() == "yes") == helps else -9.0 for each in options)
        return replace(choice, log_probs=tuple(scores))


def walk(model, **options):
    desk = desk_of(model, MARKET, budget_tokens=300)
    made = MemoryOptions(min_words=30, max_words=60, fan_out=3)
    desk = replace(desk, memories=memories_of(model, MARKET, options=made))
    steps = list(TreeReader(max_calls=100, **options).read(desk, QUESTION))
    assert isinstance(steps[-1], Answer)
    return [step for step in steps if isinstance(step, Walked)], steps[-1]


@pytest.mark.parametrize("ability", ["tiny", "small", "large"])
def test_a_walk_that_finds_nothing_reads_every_leaf_once(ability):
    walked, _ = walk(Walker(ability=ability, parts=[1] * 100), max_steps=100)
    read = [step.node for step in walked if step.action == "read"]
    assert len(read) == len(set(read))
    assert (
        "".join(
            s.place.span.of(TEXT)
            for s in sorted((s for s in walked if s.action == "read"), key=lambda s: s.place.span)
        )
        == TEXT
    )


def test_where_no_part_helps_the_search_answers_and_a_step_says_so():
    desk = desk_of(Walker(), MARKET, budget_tokens=300)
    steps = list(TreeReader(max_calls=100).read(desk, QUESTION))
    [degraded] = [step for step in steps if isinstance(step, Degraded)]
    assert "what the search found" in str(degraded)
    assert steps[-1].found
    assert steps[-1].usage == desk.model.spent


def test_where_no_part_helps_and_the_model_finds_nothing_it_is_not_found():
    model = ObligingLLM(say=lambda messages: "NOT FOUND")
    steps = list(TreeReader().read(desk_of(model, MARKET, budget_tokens=300), QUESTION))
    assert not steps[-1].found
    assert steps[-1].nearest


@pytest.mark.parametrize("name", NAMES)
def test_the_walk_turns_back_until_it_finds_the_leaf(name):
    model = Walker(helps=name)
    walked, answer = walk(model, max_steps=100, max_leaves=1)
    last = [step for step in walked if step.action == "read"][-1]
    assert name in last.place.span.of(TEXT)
    assert walked[-1].action == "stop"
    leaf = last.place.span.of(TEXT).strip()
    assert any(
        "[Known from the contents]" in m.content and leaf in m.content for m in model.seen[-1]
    )
    assert all(last.place.span.contains(citation.span) for citation in answer.citations)


def test_the_walk_ends_after_so_many_steps():
    walked, _ = walk(Walker(), max_steps=3)
    assert len([step for step in walked if step.action in ("down", "up", "read")]) == 3
    assert "after 3 steps" in walked[-1].why


def test_a_large_model_gives_its_reason_and_may_turn_back():
    walked, _ = walk(Walker(helps="Hubert", parts=[1, 0], ability="large"), max_steps=100)
    assert [(step.action, step.why) for step in walked[:2]] == [("down", "try 1"), ("up", "try 0")]
    assert len(walked) > 3


def test_it_goes_on_where_it_was_unsure_until_enough_leaves_help():
    walked, answer = walk(Walker(helps="apples"), max_steps=100, max_leaves=3)
    assert len([step for step in walked if step.action == "read"]) == 3
    assert answer.found
