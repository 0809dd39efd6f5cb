"""What two questions about one document share of their prompts, from the beginning, token by token.

That is what a prefix cache spares: it holds beginnings, and nothing behind the first difference.
"""

from functools import cache
from itertools import pairwise

import pytest
from desks import desk_of, document_of
from fake_models import ObligingLLM
from tokenizers import Tokenizer

from agents.steps import Opening
from app.settings import Settings
from serving.plugins import make

TEXT = "\n\n".join(
    f"Chapter {n}\n\n"
    + " ".join(
        f"In the year {1700 + n * 10 + k} the miller of Ansty sold {k + n} sacks to the baker."
        for k in range(20)
    )
    for n in range(1, 7)
)
QUESTIONS = ("How many sacks were sold in 1712?", "Who bought what the miller sold in 1755?")


@cache
def tokenizer():
    """A real one, where the models are; else words are compared."""
    file = Settings().models / "minilm-l6-v2" / "tokenizer.json"
    if not file.is_file():
        return None
    found = Tokenizer.from_file(str(file))
    found.no_truncation()
    found.no_padding()
    return found


def tokens(messages):
    """A prompt's tokens."""
    text = "\n".join(message.content for message in messages)
    if tokenizer() is None:
        return text.split()
    return tokenizer().encode(text, add_special_tokens=False).ids


def shared(one, other):
    """How many tokens two prompts begin with alike."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def prompts(ability, reader):
    """The prompts of both questions, asked one after the other."""
    model = ObligingLLM(ability=ability)
    desk = desk_of(model, document_of("Rye", TEXT), budget_tokens=400)
    rounds, begun = [], 0
    for question in QUESTIONS:
        for _ in make("agents.readers", reader).read(desk, question):
            pass
        rounds.append([tokens(seen) for seen in model.seen[begun:]])
        begun = len(model.seen)
    return rounds


@pytest.mark.parametrize(
    ("ability", "reader", "least"),
    [
        ("small", "full", 0.95),
        ("large", "full", 0.99),
        ("large", "gist", 0.80),  # every gist stands before the question; what is opened differs
        ("small", "oprag", 0.65),  # what is found differs from question to question
        ("large", "oprag", 0.70),
        ("small", "agent", 0.55),
        ("large", "agent", 0.55),
        ("small", "notes", 0.30),  # the notes so far stand before each part, and are the question's
        ("large", "notes", 0.30),
        ("small", "margins", 0.90),
        ("large", "margins", 0.90),
        ("small", "tree", 0.80),
        ("large", "tree", 0.75),  # it turns back at once, and answers from what a search finds
    ],
)
def test_the_second_question_finds_the_document_in_the_cache(ability, reader, least):
    first, second = prompts(ability, reader)
    spared = sum(max(shared(prompt, known) for known in first) for prompt in second)
    assert spared / sum(map(len, second)) >= least


@pytest.mark.parametrize("ability", ["small", "large"])
def test_the_confirmation_begins_as_the_answer_did(ability):
    for asked in prompts(ability, "full"):
        for answer, confirm in pairwise(asked):
            assert shared(answer, confirm) >= 0.95 * len(confirm)


@pytest.mark.parametrize("ability", ["tiny", "small", "large"])
@pytest.mark.parametrize("reader", ["full", "auto"])
def test_what_is_read_ahead_is_how_the_prompts_begin(ability, reader):
    desk = desk_of(ObligingLLM(ability=ability), document_of("Rye", TEXT[:1_500]))
    opening = tokens(make("agents.readers", reader).opening(desk))
    for _ in make("agents.readers", reader).read(desk, QUESTIONS[0]):
        pass
    (first, *_) = (tokens(seen) for seen in desk.model.seen)
    assert shared(opening, first) >= 0.95 * len(opening)


def test_where_prompts_hold_what_is_found_there_is_nothing_to_read_ahead():
    desk = desk_of(ObligingLLM(ability="small"), document_of("Rye", TEXT), budget_tokens=60)
    assert make("agents.readers", "auto").opening(desk) is None
    assert not isinstance(make("agents.readers", "oprag"), Opening)
