import json
from dataclasses import replace

from desks import desk_of, document_of, memories_of
from fake_models import ObligingLLM

from agents.answer import Answer
from agents.readers.gist import GistReader
from agents.steps import Building, Degraded, LookedUp
from memory.memories import finished
from memory.options import MemoryOptions

NAMES = ("Adela", "Bertram", "Clothilde", "Dietmar", "Edith", "Fabian", "Gisela", "Hubert")
TEXT = "\n\n".join(
    f"On the {i + 2}nd day {name} went to the market of Ansty and bought {i + 11} red apples. "
    f"The apples of {name} were sweet, and the weather stayed as fine as anybody could wish. "
    f"In the evening {name} came home, slept for a long while and dreamt of the market."
    for i, name in enumerate(NAMES)
)
MARKET = document_of("The Market", TEXT)


class Steered(ObligingLLM):
    """Names given parts when it is asked for parts, and says yes or no as it is told."""

    def __init__(self, parts=(), yes=True, **options):
        super().__init__(ability="large", **options)
        self._parts, self._yes = list(parts), yes

    def stream(self, messages, *, max_tokens, temperature=0.0, stop=(), schema=None):
        if schema is not None and "parts" in schema.get("properties", {}) and self._parts:
            self._say = lambda _: json.dumps({"parts": self._parts.pop(0)})
        completion = yield from super().stream(
            messages, max_tokens=max_tokens, temperature=temperature, stop=stop, schema=schema
        )
        self._say = None
        return completion

    def choose(self, messages, options):
        choice = super().choose(messages, options)
        return replace(choice, log_probs=said(options, yes=self._yes))


def said(options, *, yes):
    return tuple(-0.1 if (option.casefold() == "yes") == yes else -9.0 for option in options)


def desk_for(model, budget_tokens=400):
    desk = desk_of(model, MARKET, budget_tokens=budget_tokens)
    options = MemoryOptions(min_words=30, max_words=60, fan_out=3)
    return replace(desk, memories=memories_of(model, MARKET, options=options))


def lookups(model):
    """The prompts by which a large model names parts."""
    return [call[-1].content for call in model.seen if "Short versions:" in call[-1].content]


def test_the_looked_up_parts_stand_in_place_of_their_gists():
    model = Steered(parts=[[3]])
    steps = list(GistReader().read(desk_for(model), "How many apples did Edith buy?"))
    opened = [step for step in steps if isinstance(step, LookedUp) and step.places]
    (place,) = opened[0].places
    prompt = next(call[-1].content for call in reversed(model.seen) if "Question" in str(call))
    whole = [part for part in TEXT.split("\n\n") if part in place.span.of(TEXT)]
    assert whole
    shown = prompt.index(whole[0].split(". ")[-1])
    assert prompt.index("[2]") < shown < prompt.index("[4]")
    assert isinstance(steps[-1], Answer)


def test_every_question_begins_with_the_same_gists():
    model = Steered(parts=[[1], [2]])
    desk = desk_for(model, budget_tokens=120)  # half of it does not hold all gists
    for question in ("How many apples did Hubert buy?", "When did Bertram go to the market?"):
        assert isinstance(list(GistReader().read(desk, question))[-1], Answer)
    one, two = lookups(model)
    head = one[: one.index("Question:")]
    assert two.startswith(head)
    assert all(name in head for name in NAMES)


def test_the_memory_is_made_for_the_first_question_only():
    model = Steered(parts=[[1], [2]])
    desk = desk_for(model)
    first = list(GistReader().read(desk, "What did Adela buy?"))
    again = list(GistReader().read(desk, "What did Edith buy?"))
    made = [max(s.usage.calls for s in x if isinstance(s, Building)) for x in (first, again)]
    assert made[0] >= 4
    assert made[1] == 0
    assert again[-1].usage.calls < first[-1].usage.calls


def test_one_part_at_a_time_until_what_is_open_will_do():
    content = Steered(parts=[[2], [4], [6]], yes=True)
    steps = list(GistReader(sequential=True).read(desk_for(content), "What did Edith buy?"))
    assert sum(bool(s.places) for s in steps if isinstance(s, LookedUp)) == 1
    hungry = Steered(parts=[[2], [3], [4]], yes=False)
    reader = GistReader(sequential=True, max_lookups=2)
    steps = list(reader.read(desk_for(hungry), "What did Edith buy?"))
    assert sum(bool(s.places) for s in steps if isinstance(s, LookedUp)) == 2


def test_parts_that_are_not_there_are_refused_once_and_then_the_search_chooses():
    model = Steered(parts=[[99], [99]])
    steps = list(GistReader().read(desk_for(model), "How many apples did Edith buy?"))
    assert any("numbered 1 to" in s.why for s in steps if isinstance(s, Degraded))
    (opened,) = [s for s in steps if isinstance(s, LookedUp) and s.places]
    assert any("Edith" in place.span.of(TEXT) for place in opened.places)


def test_a_memory_that_takes_too_many_calls_is_not_made():
    model = ObligingLLM()
    desk = desk_for(model)
    steps = list(GistReader(max_calls=1).read(desk, "What did Edith buy?"))
    assert any("gistree memory" in s.why for s in steps if isinstance(s, Degraded))
    assert not any(isinstance(s, Building) for s in steps)
    finished(desk.memories.gists(MARKET.id))
    steps = list(GistReader(max_calls=1).read(desk, "What did Edith buy?"))
    assert not any("gistree memory" in s.why for s in steps if isinstance(s, Degraded))


def test_what_a_large_model_looks_up_from_can_be_read_ahead_once_it_is_made():
    model = Steered(parts=[[3], []])
    desk = desk_for(model)
    reader = GistReader()
    assert reader.opening(desk) is None
    finished(desk.memories.gists(MARKET.id))
    ahead = reader.opening(desk)[-1].content
    list(reader.read(desk, "What did Clothilde buy?"))
    asked = lookups(model)[0]
    same = next(i for i, (a, b) in enumerate(zip(ahead, asked, strict=False)) if a != b)
    assert asked[:same].endswith("Question: ")
    assert GistReader().opening(desk_for(ObligingLLM(ability="small"))) is None


def test_gists_of_which_the_question_decides_are_not_read_ahead():
    model = Steered()
    desk = desk_for(model)
    finished(desk.memories.gists(MARKET.id))
    model.context_window = 100
    assert GistReader().opening(desk) is None
