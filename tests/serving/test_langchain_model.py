"""LangChain's chat models behind gistree's protocol, with the real LangChain."""

import json

import pytest

from serving.asking import ask, field, pick
from serving.errors import BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import LanguageModel, Message, Usage

pytest.importorskip("langchain_core", reason="needs the extra; make test-extras")
pytestmark = pytest.mark.extras

ASKED = [Message("system", "Be brief."), Message("user", "Which schooner?")]
FORM = {
    "type": "object",
    "properties": {"ship": {"type": "string"}},
    "required": ["ship"],
    "additionalProperties": False,
}


def fake(*replies, **options):
    """A model of LangChain's fake chat model, which streams word by word."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    from serving.backends.langchain import LangChainModel

    return LangChainModel(GenericFakeChatModel(messages=iter(replies)), **options)


def counted(text, **more):
    from langchain_core.messages import AIMessage

    usage = {
        "input_tokens": 40,
        "output_tokens": 3,
        "total_tokens": 43,
        "input_token_details": {"cache_read": 32},
    }
    return AIMessage(text, usage_metadata=usage, **more)


@pytest.fixture
def provider(monkeypatch):
    """A chat model with the fields and the structured output that providers' classes have."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Provider(BaseChatModel):
        max_tokens: int | None = None
        temperature: float | None = None
        logprobs: bool | None = None
        top_logprobs: int | None = None
        replies: list
        seen: list

        @property
        def _llm_type(self):
            return "provider"

        def bind_tools(self, tools, **options):
            self.seen.append(tools)
            return self

        def _generate(self, messages, stop=None, run_manager=None, **options):
            self.seen.append((messages, self.max_tokens, self.temperature, stop))
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            if self.logprobs:
                top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -2.5}]
                reply = AIMessage(
                    "B", response_metadata={"logprobs": {"content": [{"top_logprobs": top}]}}
                )
            return ChatResult(generations=[ChatGeneration(message=reply)])

    from serving.backends.langchain import LangChainModel

    def make(*replies, **options):
        chat = Provider(replies=list(replies), seen=[], **options)
        return LangChainModel(chat, context_window=2_000), chat

    return make


def test_it_keeps_the_protocol_and_streams_word_by_word():
    model = fake("The schooner Petrel.")
    assert isinstance(model, LanguageModel)
    stream = model.stream(ASKED, max_tokens=50)
    pieces = []
    try:
        while True:
            pieces.append(next(stream))
    except StopIteration as end:
        completion = end.value
    assert len(pieces) > 2
    assert completion.text == "".join(pieces) == "The schooner Petrel."
    assert completion.finish == "stop"
    assert completion.usage.prompt_tokens >= 8
    assert completion.usage.calls == 1


def test_the_providers_count_of_tokens_is_taken_the_cached_included(provider):
    model, chat = provider(counted("Petrel.", response_metadata={"finish_reason": "length"}))
    completion = model.complete(ASKED, max_tokens=7, temperature=0.3, stop=["\n"])
    assert completion.usage == Usage(40, 32, 3, 1)
    assert completion.finish == "length"
    messages, max_tokens, temperature, stop = chat.seen[0]
    assert [m.type for m in messages] == ["system", "human"]
    assert (max_tokens, temperature, stop) == (7, 0.3, ["\n"])
    assert chat.max_tokens is None  # the person's own object stays as it was


def test_a_model_that_knows_no_limit_is_held_to_one():
    completion = fake("word " * 500).complete(ASKED, max_tokens=20)
    assert completion.finish == "length"
    assert len(completion.text.split()) < 60


def test_a_schema_binds_where_the_chat_model_has_structured_output(provider):
    call = {"name": "reply", "args": {"ship": "Petrel"}, "id": "1", "type": "tool_call"}
    model, _ = provider(counted("", tool_calls=[call]))
    completion = model.complete(ASKED, max_tokens=50, schema=FORM)
    assert json.loads(completion.text) == {"ship": "Petrel"}
    assert completion.usage.cached_tokens == 32


def test_a_schema_of_alternatives_is_put_into_an_object_and_taken_out_again(provider):
    call = {"name": "reply", "args": {"reply": {"ship": "Petrel"}}, "id": "1", "type": "tool_call"}
    model, chat = provider(counted("", tool_calls=[call]))
    completion = model.complete(ASKED, max_tokens=50, schema={"anyOf": [FORM]})
    assert json.loads(completion.text) == {"ship": "Petrel"}
    sent = chat.seen[0][0]
    assert "anyOf" not in sent.get("parameters", sent)


def test_elsewhere_the_form_is_asked_for_and_a_wrong_reply_gets_a_second_chance():
    model = fake("The Petrel!", '```json\n{"ship": "Petrel"}\n```')
    asked = ask(
        model, ASKED, schema=FORM, read=lambda reply: field(reply, "ship", str), max_tokens=50
    )
    assert asked.value == "Petrel"
    assert asked.usage.calls == 2


def test_choosing_takes_log_probabilities_where_the_provider_gives_them(provider):
    model, _ = provider(counted("B"))
    choice = model.choose(ASKED, ["the Petrel", "the Tern"])
    assert choice.best == 1
    assert choice.log_probs == (-2.5, -0.1)


def test_choosing_without_log_probabilities_says_so_and_readers_ask_in_words():
    with pytest.raises(BadReply, match="no log-probabilities"):
        fake().choose(ASKED, ["yes", "no"])
    picked = pick(fake('{"choice": "no"}'), ASKED, ["yes", "no"])
    assert picked.value is not None
    assert max(range(2), key=picked.value.__getitem__) == 1


def test_failures_are_explained(provider):
    from langchain_core.exceptions import ContextOverflowError, ModelNotFoundError

    from serving.backends.langchain import LangChainModel

    model, _ = provider(
        RuntimeError("too many requests"), ContextOverflowError("long"), ModelNotFoundError("gone")
    )
    for kind in (ModelUnavailable, ContextOverflow, ModelNotFound):
        with pytest.raises(kind):
            model.complete(ASKED, max_tokens=10)
    with pytest.raises(ContextOverflow):
        model.complete([Message("user", "word " * 5_000)], max_tokens=10)
    with pytest.raises(ModelNotFound, match="provider:model"):
        LangChainModel("nobody:nothing")


def test_a_model_that_only_thinks_says_so(provider):
    model, _ = provider(counted("", response_metadata={"stop_reason": "max_tokens"}))
    with pytest.raises(BadReply, match="thinking"):
        model.complete(ASKED, max_tokens=10)


def test_a_model_may_keep_its_own_temperature(provider):
    from serving.backends.langchain import LangChainModel

    _, chat = provider(counted("Petrel."), temperature=1.0)
    LangChainModel(chat, sets_temperature=False).complete(ASKED, max_tokens=10)
    assert chat.seen[0][2] == 1.0


def test_the_settings_name_such_a_model():
    from app.models import choose_model, open_model
    from app.settings import Settings

    settings = Settings(model="langchain:nobody:nothing")
    assert choose_model(settings).name == "langchain:nobody:nothing"
    with pytest.raises(ModelNotFound, match="nobody"):
        open_model(settings)


def test_a_library_answers_with_such_a_model(opened_with):
    library = opened_with(fake("The schooner Petrel struck the reef."))
    answer = library.ask("Which schooner struck the reef?", reader="oprag")
    assert answer.found
    assert "Petrel" in answer.citations[0].quote
    assert answer.model.startswith("langchain:")


@pytest.fixture
def opened_with(tmp_path):
    """Opens a library of one tale with a given model, and closes it."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1] / "retrieval"))
    from fakes import HashingEmbedder

    from app.library import Library
    from app.settings import Settings

    libraries = []

    def open_one(model):
        settings = Settings(library=str(tmp_path / "library"), pruner="none")
        library = Library(settings=settings, model=model, embedder=HashingEmbedder())
        tale = b"The lamp went out.\n\nThe schooner Petrel struck the reef in March and sank."
        library.add(tale, name="tale.txt")
        libraries.append(library)
        return library

    yield open_one
    for library in libraries:
        library.close()
