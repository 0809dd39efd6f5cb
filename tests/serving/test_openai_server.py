import math

import pytest
from fake_server import Answer, FakeServer, events, sse

from serving.backends.openai import OpenAIServer
from serving.errors import (
    BadReply,
    ContextOverflow,
    ModelNotFound,
    ModelUnavailable,
)
from serving.model import LanguageModel, Message, Usage

ASK = [Message("system", "Be brief."), Message("user", "Where is the lamp?")]
CHAT = "/v1/chat/completions"


def connect(server: FakeServer, owned_by: str = "someone", **options) -> OpenAIServer:
    """A model of a fake server that lists two."""
    entry = {"id": "big", "owned_by": owned_by} | options.pop("entry", {})
    server.say("/v1/models", {"object": "list", "data": [entry, {"id": "other"}]})
    return OpenAIServer(server.url, max_tries=1, **options)


@pytest.fixture
def plain(server):
    model = connect(server)
    yield model
    model.close()


@pytest.fixture
def vllm(server):
    model = connect(server, "vllm", entry={"max_model_len": 64})
    yield model
    model.close()


def test_the_first_model_that_is_listed(server, plain):
    assert plain.name == "big"
    assert isinstance(plain, LanguageModel)


def test_the_address_may_end_in_v1(server):
    server.say("/v1/models", {"data": [{"id": "m"}]})
    model = OpenAIServer(server.url + "/v1/", model="m")
    assert server.requests[0].path == "/v1/models"
    model.close()


def test_an_unknown_model_lists_the_known_ones(server):
    with pytest.raises(ModelNotFound, match="no model 'small'; it has: big, other"):
        connect(server, model="small")


def test_a_server_without_a_model(server):
    server.say("/v1/models", {"data": []})
    with pytest.raises(ModelNotFound, match="has no model"):
        OpenAIServer(server.url)


@pytest.mark.parametrize("reply", [{"data": "no"}, {"data": [1]}, ["x"]])
def test_something_else_answers_there(server, reply):
    server.say("/v1/models", reply)
    with pytest.raises(BadReply, match="does not list models"):
        OpenAIServer(server.url)


def test_a_wrong_key(server):
    server.say("/v1/models", Answer("", 401))
    with pytest.raises(ModelUnavailable, match="refuses the key"):
        OpenAIServer(server.url, api_key="wrong")


def test_the_window_is_the_servers_or_a_smaller_one_that_was_asked_for(server):
    for asked, window in ((0, 64), (32, 32), (100, 64)):
        model = connect(server, "vllm", entry={"max_model_len": 64}, context_window=asked)
        assert model.context_window == window
        model.close()


def test_the_window_where_nobody_says(server, plain):
    assert plain.context_window == 8_192


def test_a_reply_streams_and_its_usage_is_the_servers(server, plain):
    usage = {
        "prompt_tokens": 40,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 32},
    }
    server.say(CHAT, events("In ", "the ", "tower.", usage=usage))
    stream = plain.stream(ASK, max_tokens=8, temperature=0.5, stop=["\n"])
    pieces = []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            done = end.value
            break
    assert pieces == ["In ", "the ", "tower."]
    assert (done.text, done.finish) == ("In the tower.", "stop")
    assert done.usage == Usage(40, 32, 3, 1)
    sent = server.asked(CHAT)[0].body
    assert sent["messages"][1] == {"role": "user", "content": "Where is the lamp?"}
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("big", 8, 0.5)
    assert sent["stop"] == ["\n"]


def test_a_reply_that_was_cut_off_says_so(server, plain):
    server.say(CHAT, events("In the", finish="length"))
    assert plain.complete(ASK, max_tokens=2).finish == "length"


def test_usage_is_counted_here_where_the_server_is_silent(server, plain):
    server.say(CHAT, events("tower"))
    usage = plain.complete(ASK, max_tokens=8).usage
    assert usage.prompt_tokens == plain.count_prompt(ASK)
    assert usage.completion_tokens == plain.count_tokens("tower")
    assert usage.calls == 1


def test_a_schema_is_the_servers_to_enforce(server, plain):
    schema = {"type": "object", "properties": {"found": {"type": "boolean"}}}
    server.say(CHAT, events('{"found": true}'))
    assert plain.complete(ASK, max_tokens=8, schema=schema).text == '{"found": true}'
    form = server.asked(CHAT)[0].body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == schema


def test_a_failure_in_the_middle_of_a_stream(server, plain):
    server.say(CHAT, sse([{"error": {"message": "out of memory"}}]))
    with pytest.raises(ModelUnavailable, match="out of memory"):
        plain.complete(ASK, max_tokens=8)


def test_a_reply_that_is_all_thinking(server, plain):
    thinking = [{"choices": [{"delta": {"reasoning_content": "Hm."}, "finish_reason": "length"}]}]
    server.say(CHAT, sse(thinking))
    with pytest.raises(BadReply, match="spent all 8 tokens of its reply on thinking"):
        plain.complete(ASK, max_tokens=8)


def test_a_prompt_that_does_not_fit_is_never_sent(server, plain):
    with pytest.raises(ContextOverflow, match=r"its reply may take 9,000.*window is 8,192"):
        plain.complete(ASK, max_tokens=9_000)
    assert not server.asked(CHAT)


@pytest.mark.parametrize(
    ("text", "tokens"),  # by the more talkative of two tokenizers
    [
        ("1837 2.718281828 100,000 12/03/1999 7 8 9", 41),
        ("Все счастливые семьи похожи друг на друга", 35),
        ("吾輩は猫である。名前はまだ無い。", 30),
        ("It is a truth universally acknowledged.", 8),
    ],
)
def test_estimated_tokens_are_no_fewer_than_real_ones(server, plain, text, tokens):
    assert tokens <= plain.count_tokens(text) <= 4 * tokens


def test_vllm_counts_by_its_tokenizer_and_once(server, vllm):
    server.say("/tokenize", {"count": 3, "max_model_len": 64, "tokens": [7, 8, 9]})
    assert [vllm.count_tokens("a lamp") for _ in range(3)] == [3, 3, 3]
    (asked,) = server.asked("/tokenize")
    assert asked.body == {"model": "big", "prompt": "a lamp", "add_special_tokens": False}


TOKENS = (
    {"tokens": [21]},  # the options are counted first, to see that they fit
    {"tokens": [22, 23]},
    {"tokens": [1, 2, 3]},  # the prompt, to see that it fits
    {"tokens": [1, 2, 3]},
    {"tokens": [21]},
    {"tokens": [22, 23]},
)


def next_tokens(index, **likely):
    by_token = {f"token_id:{name[1:]}": value for name, value in likely.items()}
    return {"index": index, "logprobs": {"top_logprobs": [by_token]}}


def test_vllm_is_asked_what_may_come_next_so_that_the_prompt_stays_in_its_cache(server, vllm):
    server.say("/tokenize", *TOKENS)
    first = {"choices": [next_tokens(0, _21=-2.0, _22=-0.5, _23=-8.0)]}
    second = {"choices": [next_tokens(0, _21=-7.0, _22=-7.0, _23=-0.25)]}
    spent = {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    server.say("/v1/completions", first | {"usage": spent}, second | {"usage": spent})
    choice = vllm.choose(ASK, ["tower", "by the sea"])
    assert choice.log_probs == (-2.0, -0.75)
    assert choice.usage == Usage(6, 4, 0, 1)
    sent = [request.body for request in server.asked("/v1/completions")]
    assert [body["prompt"] for body in sent] == [[[1, 2, 3]], [[1, 2, 3, 22]]]
    assert all(body["logprob_token_ids"] == [21, 22, 23] for body in sent)


def test_a_vllm_that_does_not_tell_scores_an_echo_and_is_not_asked_again(server, vllm):
    server.say("/tokenize", *TOKENS, {"tokens": [1, 2, 3]})
    overlooked = {"choices": [next_tokens(0, _9=-0.1)]}
    scored = [
        {"index": 1, "logprobs": {"token_logprobs": [None, -9, -9, -0.5, -0.25, -7]}},
        {"index": 0, "logprobs": {"token_logprobs": [None, -9, -9, -2.0, -7]}},
    ]
    echo = {"choices": scored, "usage": {"prompt_tokens": 9}}
    server.say("/v1/completions", overlooked, echo, echo)
    for _ in range(2):
        choice = vllm.choose(ASK, ["tower", "by the sea"])
        assert vllm.dialect.scores_text
        assert choice.log_probs == (-2.0, -0.75)
        assert choice.best == 1
    sent = [request.body for request in server.asked("/v1/completions")]
    assert ["echo" in body for body in sent] == [False, True, True]
    assert sent[1]["prompt"] == [[1, 2, 3, 21], [1, 2, 3, 22, 23]]


def test_vllm_scores_long_texts_by_an_echo(server, vllm):
    long = list(range(100, 130))
    server.say("/tokenize", {"tokens": long}, {"tokens": [7]}, {"tokens": [1]}, {"tokens": [1]})
    server.answers["/tokenize"] += [Answer({"tokens": long}), Answer({"tokens": [7]})]
    scored = [{"index": i, "logprobs": {"token_logprobs": [None] + [-1.0] * 31}} for i in range(2)]
    server.say("/v1/completions", {"choices": scored})
    assert vllm.choose(ASK, ["a long text", "b"]).log_probs == (-30.0, -1.0)


def test_thinking_is_switched_off_where_the_server_knows_how(server, vllm):
    server.say("/tokenize", {"tokens": [1]})
    server.say(CHAT, events("x"))
    vllm.complete(ASK, max_tokens=4)
    with_messages = [r for r in server.requests if r.body and "messages" in r.body]
    assert len(with_messages) == 2
    for request in with_messages:
        assert request.body["chat_template_kwargs"]["enable_thinking"] is False


def test_other_servers_choose_by_letters_and_say_so(server, plain):
    top = [{"token": " B", "logprob": -0.2}, {"token": "A", "logprob": -1.8}]
    server.say(CHAT, {"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}], "usage": {}})
    choice = plain.choose(ASK, ["tower", "by the sea", "nowhere"])
    assert not plain.dialect.scores_text
    assert choice.log_probs == (-1.8, -0.2, -math.inf)
    assert "B) by the sea" in server.asked(CHAT)[0].body["messages"][-1]["content"]


def test_choosing_without_log_probabilities(server, plain):
    server.say(CHAT, {"choices": [{"message": {"content": "B"}}]})
    with pytest.raises(BadReply, match="gives no log-probabilities"):
        plain.choose(ASK, ["tower", "sea"])


@pytest.mark.parametrize("options", [[], ["one"], ["one", ""]])
def test_what_is_no_choice(plain, options):
    with pytest.raises(ValueError, match="at least two options"):
        plain.choose(ASK, options)


def test_more_options_than_letters(plain):
    with pytest.raises(ValueError, match="at most 20"):
        plain.choose(ASK, [f"option {i}" for i in range(21)])
