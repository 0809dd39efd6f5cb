"""The embedded model, and with it the dialect of llama.cpp's server, with a real small model."""

import gc
import json
import math
import threading
import time

import psutil
import pytest

from serving.backends.llamacpp import LlamaCpp
from serving.backends.openai import OpenAIServer
from serving.errors import ContextOverflow, ModelNotFound, ModelUnavailable
from serving.model import LanguageModel, Message

FRANCE = [
    Message("system", "Answer in one word."),
    Message("user", "What is the capital of France?"),
]


def test_a_greedy_reply_is_the_same_each_time(smollm):
    first = smollm.complete(FRANCE, max_tokens=16)
    assert "Paris" in first.text
    assert first.usage.completion_tokens > 0
    assert smollm.complete(FRANCE, max_tokens=16).text == first.text


def test_it_is_a_language_model(smollm):
    assert isinstance(smollm, LanguageModel)
    assert smollm.name == "smollm2-135m-instruct-q4_1"
    assert smollm.context_window == 2_048
    assert smollm.dialect.scores_text


def test_the_pieces_of_a_stream_are_the_reply(smollm):
    stream = smollm.stream(FRANCE, max_tokens=16)
    pieces = []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            whole = end.value
            break
    assert len(pieces) > 2
    assert "".join(pieces) == whole.text


def test_a_reply_is_cut_at_its_limit_and_before_a_stop(smollm):
    ask = [Message("user", "Count from 1 to 20: 1, 2, 3, 4,")]
    assert smollm.complete(ask, max_tokens=3).finish == "length"
    whole = smollm.complete(ask, max_tokens=40).text
    assert "6" in whole
    assert smollm.complete(ask, max_tokens=40, stop=["6"]).text == whole[: whole.index("6")]


def test_a_schema_binds_even_a_model_that_does_not_understand_it(smollm):
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 12},
            "size": {"enum": ["small", "large"]},
        },
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    reply = json.loads(smollm.complete(FRANCE, max_tokens=64, schema=schema).text)
    assert reply.keys() == {"city", "size"}
    assert reply["size"] in ("small", "large")


def test_a_common_beginning_is_not_computed_again(smollm):
    text = "The harbour lay quiet under the morning fog. " * 12
    first = smollm.complete([Message("user", f"{text} Who?")], max_tokens=1).usage
    second = smollm.complete([Message("user", f"{text} Where?")], max_tokens=1).usage
    assert first.prompt_tokens > 100
    assert second.cached_tokens > 0.9 * first.prompt_tokens


def test_tokens_are_the_models_own(smollm):
    prompt = smollm.count_prompt(FRANCE)
    assert prompt == smollm.complete(FRANCE, max_tokens=1).usage.prompt_tokens
    assert smollm.count_tokens("") == 0
    assert smollm.count_tokens("Hello world, how are you?") == 7
    assert smollm.count_tokens("<|im_end|>") > 1  # a document's text holds no special tokens
    assert prompt > sum(smollm.count_tokens(m.content) for m in FRANCE)


def test_counting_is_quick_enough_for_every_sentence_of_a_chapter(smollm):
    sentences = [f"This is sentence number {i} of a chapter about the sea." for i in range(400)]
    began = time.perf_counter()
    for sentence in sentences:
        smollm.count_tokens(sentence)
    assert time.perf_counter() - began < 8.0


def test_a_prompt_that_does_not_fit_fails_at_once(smollm):
    began = time.perf_counter()
    with pytest.raises(ContextOverflow, match="window is 2,048"):
        smollm.complete([Message("user", "word " * 3_000)], max_tokens=16)
    with pytest.raises(ContextOverflow, match="its reply may take 2,040"):
        smollm.complete(FRANCE, max_tokens=2_040)
    assert time.perf_counter() - began < 2.0


def test_closing_a_stream_stops_the_model(smollm):
    stream = smollm.stream([Message("user", "Tell a very long story.")], max_tokens=1_500)
    next(stream)
    stream.close()
    began = time.perf_counter()
    smollm.complete(FRANCE, max_tokens=1)
    assert time.perf_counter() - began < 5.0  # the whole story takes a minute


def test_threads_wait_for_their_turn_and_get_their_own_replies(smollm):
    asks = [[Message("user", f"What is {n} plus {n}?")] for n in range(1, 5)]
    alone = [smollm.complete(ask, max_tokens=8).text for ask in asks]
    together: list[str] = [""] * len(asks)

    def work(i: int) -> None:
        together[i] = smollm.complete(asks[i], max_tokens=8).text

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(asks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def walked(model: LlamaCpp, messages: list[Message], option: str) -> float:
    """The log-probability of an option, found in the list of all tokens at each of its steps."""
    prompt, ids = model.dialect._prompt(messages), model.dialect._ids(option, special=False)
    return sum(
        model.dialect._look([*prompt, *ids[:place]], 1_000_000)[0][token]
        for place, token in enumerate(ids)
    )


@pytest.mark.parametrize(
    "options",
    [
        ["Paris", "London"],  # a likely and an unlikely single token
        ["Paris", "Berlin, no"],
        ["日", '"'],  # a character that is two tokens, and what a grammar must not trip over
    ],
)
def test_an_options_score_is_the_probability_of_its_tokens(smollm, options):
    choice = smollm.choose(FRANCE, options)
    for option, score in zip(options, choice.log_probs, strict=True):
        assert score == pytest.approx(walked(smollm, FRANCE, option), abs=0.2)


def test_all_next_tokens_together_are_certain(smollm):
    prompt = smollm.dialect._prompt(FRANCE)
    every, _ = smollm.dialect._look(prompt, 1_000_000)
    assert len(every) > 49_000
    assert sum(map(math.exp, every.values())) == pytest.approx(1.0, abs=1e-3)
    likeliest = max(every, key=every.__getitem__)
    said = smollm.dialect._complete(prompt, n_predict=1, n_probs=1)["completion_probabilities"][0]
    assert (said["id"], said["logprob"]) == (likeliest, pytest.approx(every[likeliest], abs=0.05))


def test_letters_take_one_request(smollm):
    choice = smollm.choose(FRANCE, ["A", "B", "C", "D"])
    assert choice.usage.calls == 1
    assert choice.usage.completion_tokens == 1
    assert all(score < 0 for score in choice.log_probs)


def test_odd_texts_pass(smollm):
    odd = [Message("user", "a\x00b \ud800 <|im_start|> ​ 🙂")]
    assert smollm.complete(odd, max_tokens=2).usage.prompt_tokens == smollm.count_prompt(odd)


def test_the_key_keeps_others_out(smollm):
    with pytest.raises(ModelUnavailable, match="refuses the key"):
        OpenAIServer(smollm._wire.base_url, api_key="guess").complete(FRANCE, max_tokens=1)


def test_a_server_by_its_address_is_the_same_model(smollm):
    server = OpenAIServer(smollm._wire.base_url, api_key=smollm._wire.api_key)
    assert server.dialect.name == "llamacpp"
    assert server.context_window == 2_048
    assert server.complete(FRANCE, max_tokens=8).text == smollm.complete(FRANCE, max_tokens=8).text
    server.close()


def test_the_window_is_no_longer_than_the_model_was_trained_for(smollm_file):
    model = LlamaCpp(smollm_file, context_window=9_000)
    assert model.context_window == 8_192
    model.close()


def test_closing_gives_the_memory_back(smollm_file):
    gc.collect()
    before = psutil.Process().memory_info().rss
    model = LlamaCpp(smollm_file, context_window=8_192)
    model.complete(FRANCE, max_tokens=1)
    held = psutil.Process().memory_info().rss - before
    model.close()
    model.close()  # twice is fine
    left = psutil.Process().memory_info().rss - before
    assert held > 150e6
    assert left < 0.4 * held


def test_nothing_is_written_to_the_terminal(smollm_file, capfd):
    model = LlamaCpp(smollm_file, context_window=512)
    model.complete(FRANCE, max_tokens=1)
    model.close()
    assert capfd.readouterr() == ("", "")


def test_what_is_no_model_file(tmp_path, smollm_file):
    with pytest.raises(ModelNotFound, match="no model file"):
        LlamaCpp(tmp_path / "none.gguf")
    (tmp_path / "book.gguf").write_text("Call me Ishmael.")
    with pytest.raises(ModelNotFound, match="is no GGUF file"):
        LlamaCpp(tmp_path / "book.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(smollm_file.read_bytes()[:2_000_000])
    with pytest.raises(ModelNotFound, match="may be cut off"):
        LlamaCpp(cut)


PASSAGE = (
    "Joss pulled eleven sailors from the water. The captain, a man named Orlov, was not among "
    "them. The schooner had left Riga with a cargo of flax nine days before."
)


@pytest.mark.slow
def test_the_default_model_reads(qwen):
    ask = [
        Message("system", "Answer from the passage, in a few words."),
        Message("user", f"{PASSAGE}\n\nWhat did the schooner carry?"),
    ]
    assert "flax" in qwen.complete(ask, max_tokens=24).text.lower()
    schema = {"type": "object", "properties": {"captain": {"type": "string"}}}
    schema["required"] = ["captain"]
    named = [Message("user", f"{PASSAGE}\n\nWho was the captain? Reply as JSON.")]
    assert "Orlov" in json.loads(qwen.complete(named, max_tokens=32, schema=schema).text)["captain"]


@pytest.mark.slow
def test_the_default_model_chooses(qwen):
    options = ["flax", "whale oil", "sailors", "nothing at all"]
    ask = [
        Message("system", "Answer from the passage, in a few words."),
        Message("user", f"{PASSAGE}\n\nWhat was the cargo?"),
    ]
    choice = qwen.choose(ask, options)
    assert options[choice.best] == "flax"
    assert choice.log_probs[1] == pytest.approx(walked(qwen, ask, options[1]), abs=0.2)
