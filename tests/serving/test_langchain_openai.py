"""What a real provider's package sends for a call of gistree's, and what is made of the reply."""

import json

import pytest
from fake_server import Answer, FakeServer, events

from serving.errors import ModelNotFound, ModelUnavailable
from serving.model import Message, Usage

pytest.importorskip("langchain_openai", reason="needs the extra; make test-extras")
pytestmark = pytest.mark.extras

PATH = "/v1/chat/completions"
ASKED = [Message("system", "Be brief."), Message("user", "Which ship?")]
FORM = {
    "type": "object",
    "properties": {"ship": {"type": "string"}},
    "required": ["ship"],
    "additionalProperties": False,
}
SPENT = {
    "prompt_tokens": 90,
    "completion_tokens": 7,
    "total_tokens": 97,
    "prompt_tokens_details": {"cached_tokens": 64},
}


@pytest.fixture
def server():
    fake = FakeServer()
    yield fake
    fake.close()


@pytest.fixture
def model(server):
    from langchain_openai import ChatOpenAI

    from serving.backends.langchain import LangChainModel

    chat = ChatOpenAI(
        base_url=f"{server.url}/v1", api_key="key", model="parrot", stream_usage=True, max_retries=0
    )
    return LangChainModel(chat, context_window=4_096)


def whole(content, finish="stop", **more):
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": finish, "message": message, **more}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "parrot"}
    return head | {"choices": [choice], "usage": SPENT}


def test_limits_reach_the_server_and_its_count_comes_back(server, model):
    server.say(PATH, events("The Pet", "rel.", usage=SPENT))
    completion = model.complete(ASKED, max_tokens=8, stop=["\n"])
    assert completion.text == "The Petrel."
    assert completion.usage == Usage(90, 64, 7, 1)
    sent = server.asked(PATH)[-1].body
    limits = {key: sent[key] for key in ("max_completion_tokens", "temperature", "stop")}
    assert limits == {"max_completion_tokens": 8, "temperature": 0.0, "stop": ["\n"]}


def test_a_schema_reaches_the_server(server, model):
    server.say(PATH, whole('{"ship": "Petrel"}'), whole("no JSON"))
    completion = model.complete(ASKED, max_tokens=20, schema=FORM)
    assert json.loads(completion.text) == {"ship": "Petrel"}
    sent = server.asked(PATH)[-1].body["response_format"]["json_schema"]["schema"]
    assert sent["properties"] == FORM["properties"]
    assert model.complete(ASKED, max_tokens=20, schema=FORM).text == "no JSON"


def test_a_reply_in_a_form_that_was_cut_off_says_so(server, model):
    server.say(PATH, whole('{"ship": "Pe', finish="length"))
    completion = model.complete(ASKED, max_tokens=3, schema=FORM)
    assert completion.finish == "length"
    assert completion.text.startswith('{"ship"')
    assert completion.usage == Usage(90, 64, 7, 1)


def test_choosing_takes_the_letters_log_probabilities(server, model):
    top = [{"token": t, "logprob": p, "bytes": None} for t, p in (("B", -0.1), ("A", -3.0))]
    odds = {"content": [{**top[0], "top_logprobs": top}]}
    server.say(PATH, whole("B", logprobs=odds))
    choice = model.choose(ASKED, ["the Tern", "the Petrel"])
    assert choice.log_probs == (-3.0, -0.1)
    assert choice.usage == Usage(90, 64, 7, 1)


def test_what_the_server_refuses_is_explained(server, model):
    server.say(PATH, Answer({"error": {"message": "no such model"}}, status=404))
    with pytest.raises(ModelNotFound, match="no such model"):
        model.complete(ASKED, max_tokens=8)
    server.say(PATH, Answer({"error": {"message": "try later"}}, status=503))
    with pytest.raises(ModelUnavailable, match="try later"):
        model.complete(ASKED, max_tokens=8)
