"""A real vLLM behind HTTP, started by ``gistree serve``."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from agents.answer import Answer
from app.library import Library
from app.server_state import prefix_cache
from serving.backends.openai import OpenAIServer
from serving.errors import BadReply, ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import Message

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
pytest.importorskip("vllm", reason="needs vLLM; make test-vllm")

MODEL = Path(
    os.environ.get("GISTREE_VLLM_MODEL", "~/.cache/gistree/models/smollm2-135m-instruct-hf")
).expanduser()
WINDOW = 2_048
KEY = "not so secret"
STORY = "The schooner Petrel struck the reef in March, and Joss rowed out to her. " * 40
ASK = [Message("system", "Be brief."), Message("user", f"{STORY}\nWho rowed out?")]


class Server:
    """``gistree serve`` on a port of its own."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._port, self._log = port, log
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        argv = [sys.executable, "-m", "app.cli", "serve", str(MODEL), "--port", str(self._port)]
        argv += ["--window", str(WINDOW), "--", "--dtype", "float32", "--enforce-eager"]
        environment = {**os.environ, "GISTREE_API_KEY": KEY, "VLLM_CPU_KVCACHE_SPACE": "1"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        ends = time.monotonic() + 300
        while not self._healthy():
            if self._process.poll() is not None or time.monotonic() > ends:
                pytest.fail(f"vLLM did not come up:\n{self._log.read_text()[-3_000:]}")
            time.sleep(0.5)

    def end(self, number: int) -> None:
        os.killpg(self._process.pid, number)
        self._process.wait(60)

    def _healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def measure(self, name: str) -> float:
        """One of the server's own counts."""
        lines = httpx.get(f"{self.url}/metrics", timeout=20, trust_env=False).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{"))

    def connect(self, **options) -> OpenAIServer:
        return OpenAIServer(self.url, **{"api_key": KEY, "ability": "tiny"} | options)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not MODEL.is_dir():
        pytest.skip(f"there is no model folder {MODEL}; make test-vllm makes it")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(port, tmp_path_factory.mktemp("vllm") / "log.txt")
    server.start()
    yield server
    server.end(signal.SIGINT)


@pytest.fixture
def model(server):
    model = server.connect()
    yield model
    model.close()


def test_it_says_what_it_is(model):
    assert (model.name, model.context_window) == (MODEL.resolve().name, WINDOW)
    assert model.dialect.name == "vllm"
    assert model.count_tokens("Joss rowed out.") > 3
    assert model.count_prompt(ASK) > model.count_tokens(STORY)


def test_a_wrong_key_and_a_wrong_name(server):
    with pytest.raises(ModelUnavailable, match="GISTREE_API_KEY"):
        server.connect(api_key="wrong")
    with pytest.raises(ModelNotFound, match=f"it has: {MODEL.resolve().name}"):
        server.connect(model="qwen3-8b")


def test_a_reply_streams_is_the_same_again_and_its_prompt_comes_from_the_cache(model):
    def read():
        pieces = []
        stream = model.stream(ASK, max_tokens=12)
        try:
            while True:
                pieces.append(next(stream))
        except StopIteration as end:
            return pieces, end.value

    (first, once), (_, twice) = read(), read()
    assert len(first) > 1
    assert "".join(first) == once.text == twice.text
    assert once.usage.prompt_tokens == model.count_prompt(ASK)
    assert twice.usage.cached_tokens > 0.8 * twice.usage.prompt_tokens
    assert once.finish == "length"


def test_another_question_about_the_same_text_finds_it_in_the_cache(model):
    model.complete(ASK, max_tokens=1)
    other = [ASK[0], Message("user", f"{STORY}\nWhen did she strike the reef?")]
    usage = model.complete(other, max_tokens=1).usage
    assert usage.cached_tokens > 0.8 * usage.prompt_tokens


def test_the_server_counts_what_its_cache_spared(server, model):
    before = prefix_cache(server.url)
    model.complete(ASK, max_tokens=1)
    model.complete(ASK, max_tokens=1)
    after = prefix_cache(server.url)
    assert after.hit > before.hit
    assert after.asked >= before.asked + 2 * model.count_prompt(ASK)


def test_closing_the_stream_ends_the_servers_work(server, model):
    stream = model.stream(ASK, max_tokens=1_000, temperature=1.0)
    next(stream)
    assert server.measure("vllm:num_requests_running") == 1
    stream.close()
    ends = time.monotonic() + 20
    while server.measure("vllm:num_requests_running"):
        assert time.monotonic() < ends
        time.sleep(0.2)


def test_a_reply_has_the_form_of_its_schema(model):
    schema = {
        "type": "object",
        "properties": {"found": {"type": "boolean"}, "part": {"enum": ["first", "last"]}},
        "required": ["found", "part"],
        "additionalProperties": False,
    }
    reply = json.loads(model.complete(ASK, max_tokens=60, schema=schema).text)
    assert isinstance(reply["found"], bool)
    assert reply["part"] in ("first", "last")


@pytest.mark.parametrize("options", [["yes", "no"], ["by the sea", "in the high tower", "Joss"]])
def test_a_choice_costs_no_new_prompt_and_is_that_of_an_echo(model, options):
    model.complete(ASK, max_tokens=1)
    choice = model.choose(ASK, options)
    assert choice.usage.cached_tokens > 0.8 * model.count_prompt(ASK)
    model.dialect._tells_next = False  # as with an older vLLM
    assert choice.log_probs == pytest.approx(model.choose(ASK, options).log_probs, abs=1e-3)


def test_long_options_are_scored_whole(model):
    options = ["Joss rowed out to her. " * 8, "Nobody rowed anywhere at all. " * 8]
    assert model.choose(ASK, options).best == 0


def test_a_prompt_past_the_window_is_never_sent_and_the_servers_own_refusal_is_understood(model):
    long = [Message("user", STORY * 4)]
    with pytest.raises(ContextOverflow, match="the window is 2,048"):
        model.complete(long, max_tokens=8)
    model._check_fits = lambda *_: 0  # as if nobody had counted
    with pytest.raises((ContextOverflow, BadReply), match=r"2,?048"):
        model.complete(long, max_tokens=8)


def test_more_at_once_than_it_takes_are_all_answered(model):
    def ask(number):
        return model.complete([Message("user", f"Count from {number}:")], max_tokens=6)

    with ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(ask, range(48)))
    assert all(reply.usage.completion_tokens > 0 for reply in replies)


def test_a_library_answers_with_it(server, tmp_path):
    with Library(tmp_path / "library", model=server.connect()) as library:
        library.add(STORY.encode(), name="petrel.txt")
        answer = library.ask("Who rowed out to the Petrel?", reader="oprag")
    assert isinstance(answer, Answer)
    assert answer.usage.calls >= 1
    assert answer.usage.prompt_tokens > 100


def test_a_server_that_dies_in_mid_reply_and_comes_back(server, model):
    stream = model.stream(ASK, max_tokens=1_000)
    next(stream)
    server.end(signal.SIGKILL)
    with pytest.raises(ModelUnavailable, match="ask again"):
        for _ in stream:
            pass
    with pytest.raises(ModelUnavailable, match="see that it runs"):
        model.complete(ASK, max_tokens=1)
    restart = threading.Thread(target=server.start)
    restart.start()
    restart.join()
    assert model.complete(ASK, max_tokens=4).text  # the same connection goes on
