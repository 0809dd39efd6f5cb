"""LangChain's agent as a loop, with the real LangChain and models that play their part."""

import pytest
from desks import desk_of, document_of

from agents.answer import Answer
from agents.looking import Limits
from agents.steps import Called, Degraded
from serving.errors import BadOption
from serving.plugins import make
from serving.scripted import ScriptedLLM

pytest.importorskip("langchain", reason="needs the extra; make test-extras")
pytestmark = pytest.mark.extras

LAMP = """Chapter 1

Mira lit the lamp in the tower every evening. The lamp burned whale oil.

Chapter 2

On the ninth of March a storm put the lamp out. The schooner Petrel struck the reef and sank.
"""
WELL = "The village of Ansty dug a well in 1790. It was forty feet deep.\n"
QUESTION = "Which schooner struck the reef?"


def player(*replies):
    """A chat model that replies in order, and can be given tools."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    from serving.backends.langchain import LangChainModel

    class Player(GenericFakeChatModel):
        def bind_tools(self, tools, **options):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **options):
            SEEN.append(messages)
            return super()._generate(messages, stop, run_manager, **options)

    SEEN.clear()
    return LangChainModel(Player(messages=played(replies)))


SEEN = []


def played(replies):
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
        yield reply


def calling(name, arguments, number=1):
    from langchain_core.messages import AIMessage

    usage = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
    call = {"name": name, "args": arguments, "id": str(number), "type": "tool_call"}
    return AIMessage("", tool_calls=[call], usage_metadata=usage)


def steps_of(model, *documents, reader="agent:loop=langchain"):
    documents = documents or (document_of("The Lamp", LAMP), document_of("The Well", WELL))
    return list(make("agents.readers", reader).read(desk_of(model, *documents), QUESTION))


def test_the_agent_calls_tools_and_its_answer_is_checked():
    model = player(
        calling("grep", {"words": "schooner"}),
        calling("read", {"document": 1, "start": 0}, 2),
        "done",
        "The schooner Petrel struck the reef.",
    )
    steps = steps_of(model)
    assert [step.tool for step in steps if isinstance(step, Called)] == ["grep", "read"]
    answer = steps[-1]
    assert isinstance(answer, Answer)
    assert answer.found
    assert "Petrel" in answer.citations[0].quote
    assert answer.usage.calls == 4
    assert answer.usage.prompt_tokens > 200
    shown = [message for message in SEEN[1] if message.type == "tool"]
    assert shown[0].content.startswith("<<<")


def test_a_bad_call_is_told_to_the_model_and_the_scope_holds():
    model = player(
        calling("read", {"document": 2}),
        calling("read", {"document": 1}, 2),
        "done",
        "NOT FOUND",
    )
    steps = steps_of(model, document_of("The Well", WELL))
    called = [step for step in steps if isinstance(step, Called)]
    assert "document must be 1 to 1" in called[0].result
    assert not any("Petrel" in step.result for step in called)
    assert not steps[-1].found


def test_a_model_that_never_stops_is_stopped():
    endless = [calling("grep", {"words": f"word{i}"}, i) for i in range(50)]
    steps = steps_of(
        player(*endless[:3], "The schooner Petrel struck the reef."),
        reader="agent:loop=langchain,max_steps=3",
    )
    assert sum(isinstance(step, Called) for step in steps) == 3
    assert steps[-1].found


def test_a_model_that_fails_leaves_what_was_seen():
    model = player(calling("grep", {"words": "Petrel"}), RuntimeError("the provider hung up"))
    looked = make("agents.loops", "langchain").look(
        desk_of(model, document_of("The Lamp", LAMP)), QUESTION, Limits(5, 1_000, 0.7)
    )
    steps = []
    try:
        while True:
            steps.append(next(looked))
    except StopIteration as end:
        gathered = end.value
    assert [type(step) for step in steps] == [Called, Degraded]
    assert "hung up" in steps[1].why
    assert "Petrel" in gathered.passages[0].span.of(LAMP)


def test_another_model_than_langchains_is_refused_in_words():
    with pytest.raises(BadOption, match="langchain:provider:model"):
        steps_of(ScriptedLLM([]))
