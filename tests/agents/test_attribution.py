"""Citations are weighed by leaving each out."""

from dataclasses import replace

import pytest
from desks import desk_of, document_of
from fake_models import ObligingLLM

from agents.answer import Answer, Claim, cite
from agents.attribution import leave_out, weed
from agents.steps import Degraded, Weighed
from memory.document import Span
from serving.errors import ModelUnavailable
from serving.model import Choice, Message, Usage
from serving.plugins import make

TEXT = "The Petrel sank in March. Gulls slept on the roof. Her captain was Orlov."


class Hanging(ObligingLLM):
    """A model whose answer is the likelier, the more of certain sentences it has before it."""

    scores_text = True

    def __init__(self, **worth):
        super().__init__()
        self.worth = worth

    def choose(self, messages, options):
        super().choose(messages, options)
        prompt = messages[-1].content
        missing = sum(cost for word, cost in self.worth.items() if word not in prompt)
        return Choice((-1.0 - missing, *(-9.0 for _ in options[1:])), Usage(10, 8, 0, 1))


def prompt(text):
    return [Message("user", text)]


def citations():
    document = document_of("The Lamp", TEXT)
    starts = [0, TEXT.index("Gulls"), TEXT.index("Her")]
    ends = [starts[1] - 1, starts[2] - 1, len(TEXT)]
    return [cite(document, Span(s, e), 0.5) for s, e in zip(starts, ends, strict=True)]


def test_a_fall_is_what_the_sentence_was_worth():
    cited = citations()
    measured = leave_out(Hanging(Petrel=4.0, Orlov=2.5), prompt, TEXT, "In March.", cited)
    assert measured.falls == pytest.approx((4.0, 0.0, 2.5))
    assert measured.usage == Usage(40, 32, 0, 4)
    elsewhere = replace(cited[0], quote="Words that the pruner changed.")
    assert leave_out(Hanging(), prompt, TEXT, "In March.", [elsewhere]).falls == (None,)


def test_what_costs_nothing_goes_and_the_rest_is_ranked_anew():
    cited = citations()
    claims = [Claim(Span(0, 5), (0, 1)), Claim(Span(6, 9), (2, 1))]
    kept, claimed = weed(cited, claims, (2.5, 0.0, 4.0))
    assert kept == (cited[2], cited[0])
    assert [claim.citations for claim in claimed] == [(1,), (0,)]


def test_no_sentence_loses_its_last_citation_and_what_was_not_measured_stays():
    cited = citations()
    kept, claimed = weed(cited, [Claim(Span(0, 5), (0, 1))], (-0.5, -0.1, 0.0))
    assert kept == (cited[1],)
    assert claimed[0].citations == (0,)
    assert weed(cited, [Claim(Span(0, 5), (0, 1))], (None, 3.0, 0.0))[0] == (cited[1], cited[0])
    assert weed(cited, [Claim(Span(0, 5), ())], (1.0, 1.0, 1.0)) == ((), (Claim(Span(0, 5), ()),))


def read(model, reader):
    desk = desk_of(model, document_of("The Lamp", TEXT))
    return list(make("agents.readers", reader).read(desk, "When did the Petrel sink?"))


def test_a_reader_weighs_only_where_it_is_asked_to():
    usual = read(Hanging(), "oprag")
    assert not any(isinstance(step, Weighed) for step in usual)
    steps = read(Hanging(Petrel=4.0), "oprag:leave_out=true")
    [weighed] = [step for step in steps if isinstance(step, Weighed)]
    answer = steps[-1]
    assert isinstance(answer, Answer)
    assert len(answer.citations) == weighed.kept
    assert answer.usage.calls > usual[-1].usage.calls
    assert all(i < len(answer.citations) for claim in answer.claims for i in claim.citations)


def test_without_log_probabilities_of_texts_the_answer_stays_and_says_so():
    steps = read(ObligingLLM(), "oprag:leave_out=true")
    [degraded] = [step for step in steps if isinstance(step, Degraded)]
    assert "how likely" in degraded.why
    assert steps[-1].citations == read(ObligingLLM(), "oprag")[-1].citations


def test_a_server_that_hangs_up_half_way_leaves_the_answer_as_it_was():
    class HangsUp(Hanging):
        def choose(self, messages, options):
            raise ModelUnavailable("the server hung up")

    assert "hung up" in leave_out(HangsUp(), prompt, TEXT, "In March.", citations()).why
