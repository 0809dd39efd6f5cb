import time

import pytest
from fake_server import Answer, FakeServer, sse

from serving.errors import BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.wire import Wire


@pytest.fixture
def wire(server: FakeServer):
    made = Wire(server.url, max_tries=3, first_wait_s=0.01)
    yield made
    made.close()


@pytest.mark.parametrize(("status", "told"), [(429, True), (503, True), (500, False)])
def test_a_server_that_is_too_busy_is_told_of_though_a_later_try_succeeds(
    server, wire, status, told
):
    server.say("/x", Answer("busy", status), {"fine": True})
    assert wire.overloaded_at == 0.0
    before = time.monotonic()
    assert wire.get("/x") == {"fine": True}
    assert (wire.overloaded_at >= before) is told


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_server_is_asked_again(server, wire, status):
    server.say("/x", Answer("busy", status), Answer("busy", status), {"fine": True})
    assert wire.get("/x") == {"fine": True}
    assert len(server.requests) == 3


def test_trying_ends_and_says_how_often(server, wire):
    server.say("/x", Answer("out of order", 503))
    with pytest.raises(ModelUnavailable, match=r"503: out of order, 3 times.*gistree models list"):
        wire.get("/x")
    assert len(server.requests) == 3


def test_waits_grow_and_are_bounded():
    patient = Wire("http://127.0.0.1:1", first_wait_s=1.0)
    try:
        waits = [patient._wait(attempt) for attempt in range(1, 10)]
    finally:
        patient.close()
    assert 0.75 <= waits[0] <= 1.25
    assert 3.0 <= waits[2] <= 5.0
    assert max(waits) == 30.0


def test_the_server_may_say_how_long_to_wait(server, wire):
    server.say("/x", Answer("", 429, {"Retry-After": "1"}), {"fine": True})
    began = time.monotonic()
    assert wire.get("/x") == {"fine": True}
    assert 1.0 <= time.monotonic() - began < 3.0


def test_a_refusal_is_not_repeated(server, wire):
    server.say("/x", Answer({"error": "temperature must be a number"}, 400))
    with pytest.raises(BadReply, match=r"refuses the request \(400\).*temperature must be"):
        wire.post("/x", {})
    assert len(server.requests) == 1


def test_nobody_there():
    wire = Wire("http://127.0.0.1:1", max_tries=2, first_wait_s=0.01)
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:1 cannot be reached.*2 times"):
        wire.get("/x")
    wire.close()


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://x", ""])
def test_what_is_no_address(address):
    with pytest.raises(ModelUnavailable, match="is no address"):
        Wire(address)


def test_silence_ends_and_is_not_asked_twice(server):
    wire = Wire(server.url, timeout_s=0.2, max_tries=3, first_wait_s=0.01)
    server.say("/x", Answer("{}", cut=True))  # the rest that was announced never comes
    with pytest.raises(ModelUnavailable, match=r"hung up|fell silent"):
        wire.get("/x")
    assert len(server.requests) == 1
    wire.close()


@pytest.mark.parametrize("said", ["<html>It works!</html>", "[" * 100_000])
def test_no_json(server, wire, said):
    server.say("/x", said)
    with pytest.raises(BadReply) as told:
        wire.get("/x")
    quoted = repr(said[:200].encode())
    assert f"sent no JSON but: {quoted}; is it an OpenAI-compatible" in str(told.value)


def test_events_come_in_order_and_comments_are_passed_over(server, wire):
    server.say("/x", ": ping\n\n" + sse([{"n": 1}, {"n": 2}]) + "data: after the end\n\n")
    assert list(wire.events("/x", {})) == [{"n": 1}, {"n": 2}]


def test_half_a_stream(server, wire):
    server.say("/x", sse([{"n": 1}], end=False))
    events = wire.events("/x", {})
    assert next(events) == {"n": 1}
    with pytest.raises(ModelUnavailable, match="half way"):
        next(events)


def test_a_stream_that_hangs_up(server, wire):
    server.say("/x", Answer(sse([{"n": 1}], end=False), cut=True))
    events = wire.events("/x", {})
    assert next(events) == {"n": 1}
    with pytest.raises(ModelUnavailable, match="hung up"):
        next(events)
    assert len(server.requests) == 1


@pytest.mark.parametrize("said", ["{nonsense", "[" * 100_000])
def test_a_broken_event(server, wire, said):
    server.say("/x", f"data: {said}\n\n")
    with pytest.raises(BadReply, match="broken event"):
        list(wire.events("/x", {}))


def test_the_key_is_sent_and_a_wrong_one_is_told(server):
    wire = Wire(server.url, api_key="secret")
    server.say("/x", Answer("no", 401))
    with pytest.raises(ModelUnavailable, match=r"refuses the key.*GISTREE_API_KEY"):
        wire.get("/x")
    assert server.requests[0].headers["authorization"] == "Bearer secret"
    wire.close()


def test_half_a_surrogate_pair_is_sent_as_a_question_mark(server, wire):
    server.say("/x", {})
    wire.post("/x", {"text": "a\ud800b"})
    assert server.requests[0].body == {"text": "a?b"}


LLAMACPP = (
    '{"error":{"code":400,"message":"request (9031 tokens) exceeds the available context size '
    '(8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9031,'
    '"n_ctx":8192}}'
)
VLLM = (
    '{"error":{"message":"This model\'s maximum context length is 8192 tokens. However, you '
    "requested 9131 tokens (9031 in the messages, 100 in the completion). Please reduce the "
    'length of the messages or completion.","type":"BadRequestError","code":400}}'
)


@pytest.mark.parametrize(("text", "asked"), [(LLAMACPP, 9031), (VLLM, 9131)])
def test_the_servers_own_words_for_a_prompt_that_is_too_long(server, wire, text, asked):
    server.say("/x", Answer(text, 400))
    with pytest.raises(ContextOverflow) as overflow:
        wire.post("/x", {})
    assert overflow.value.prompt_tokens == asked
    assert overflow.value.context_window == 8192


def test_an_unknown_model_is_not_found(server, wire):
    server.say("/x", Answer({"error": {"message": "The model `x` does not exist."}}, 404))
    with pytest.raises(ModelNotFound, match="does not exist"):
        wire.post("/x", {})


def test_a_server_that_is_not_there_at_all_is_given_up_on_sooner():
    wire = Wire("http://127.0.0.1:1", max_tries=9, first_wait_s=0.01)
    with pytest.raises(ModelUnavailable, match="3 times"):
        wire.get("/v1/models")
    wire.close()
