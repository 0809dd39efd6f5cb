"""vLLM in this process, for batches: what several threads ask for is computed together.

One thread owns the engine and steps it; requests reach it over a queue and join the running batch,
so that no request waits for another to end.
"""

import itertools
import os
import queue
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import psutil

from serving.dialects import as_json
from serving.errors import (
    BadOption,
    BadReply,
    ContextOverflow,
    MissingExtra,
    ModelNotFound,
    ModelUnavailable,
)
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain
from serving.next_tokens import Tokens, are_short, beginnings, log_probs, wanted
from serving.vllm_command import cpu_cache_gib

__all__ = ["Vllm"]

_COUNTS_KEPT = 16_384
_LOOKS_EVERY_S = 1.0  # whether the engine still lives, while it is waited for


@dataclass(slots=True)
class _Request:
    """What the engine's thread is asked for; ``said`` gets its outputs, or what went wrong."""

    name: str
    prompt: list[int]
    sampling: Any
    said: "queue.SimpleQueue[Any]" = field(default_factory=queue.SimpleQueue)


class Vllm:
    """A model in vLLM's engine. Use it where many requests come at a time.

    Attributes:
        name: What to call it.
        ability: What it can be trusted with.
        context_window: Tokens of prompt and reply together.
        num_at_once: Requests that keep it busy.
    """

    num_at_once: int = 64

    def __init__(
        self,
        model: str,
        *,
        name: str = "",
        ability: Ability = "large",
        context_window: int = 0,
        **engine: Any,
    ) -> None:
        """Loads the model, which takes a minute.

        Args:
            model: A folder, or a repository on the hub.
            name: What to call it; ``model`` where not given.
            ability: What it can be trusted with.
            context_window: Tokens; 0 takes the model's.
            engine: Further arguments of vLLM's ``EngineArgs``.

        Raises:
            MissingExtra: vLLM is not installed.
            ModelNotFound: there is no such model, or vLLM cannot load it.
        """
        # An engine in this process needs no second one, and tells nobody of itself.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        try:
            from vllm import EngineArgs, LLMEngine
            from vllm.exceptions import VLLMClientError, VLLMError
            from vllm.platforms import current_platform
        except ImportError as error:
            raise MissingExtra("vLLM in this process", "vllm") from error
        if current_platform.is_cpu():
            free = psutil.virtual_memory().available
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", cpu_cache_gib(free))
        given = {
            "enable_prefix_caching": True,
            "max_model_len": context_window or None,
            "use_tqdm_on_load": False,
        } | engine
        try:
            self._engine: Any = LLMEngine.from_engine_args(EngineArgs(model=model, **given))
        except (VLLMError, OSError, ValueError, RuntimeError) as error:
            raise ModelNotFound(f"vLLM cannot load {model}: {str(error)[:500]}") from error
        self.name = name or model
        self.ability: Ability = ability
        self.context_window: int = self._engine.model_config.max_model_len
        self._tokenizer: Any = self._engine.get_tokenizer()
        self._at_tokenizer = threading.Lock()
        self._numbers = itertools.count()
        self._asked: queue.SimpleQueue[_Request | str | None] = queue.SimpleQueue()
        self._count = lru_cache(maxsize=_COUNTS_KEPT)(lambda text: len(self._ids(text)))
        self._failed = ""
        self._refusals: tuple[type[Exception], ...] = (VLLMClientError, ValueError, TypeError)
        self._thread = threading.Thread(target=self._serve, name="vllm", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends what is being computed, and gives the memory back."""
        if self._thread.is_alive():
            self._asked.put(None)
            self._thread.join()

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The reply, piece by piece; closing the generator stops the work on it.

        Raises:
            BadOption: the schema is none.
            BadReply: vLLM refuses the request.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        if schema is not None:
            _check_schema(schema)
        prompt = self._fitting(messages, max_tokens)
        try:
            sampling = SamplingParams(
                temperature=temperature,
                max_tokens=max_tokens,
                stop=list(stop),
                output_kind=RequestOutputKind.DELTA,
                structured_outputs=(
                    None if schema is None else StructuredOutputsParams(json=dict(schema))
                ),
            )
        except self._refusals as error:
            raise self._refusal(error) from error
        pieces: list[str] = []
        cached, written = 0, 0
        finish: Literal["stop", "length"] = "stop"
        for output in self._outputs(prompt, sampling):
            said = output.outputs[0]
            cached = output.num_cached_tokens or cached
            written += len(said.token_ids)
            if said.finish_reason == "length":
                finish = "length"
            if said.text:
                pieces.append(said.text)
                yield said.text
        return Completion("".join(pieces), Usage(len(prompt), cached, written, 1), finish)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The reply as a whole."""
        return drain(
            self.stream(
                messages, max_tokens=max_tokens, temperature=temperature, stop=stop, schema=schema
            )
        )

    def choose(self, messages: Sequence[Message], options: Sequence[str]) -> Choice:
        """The log-probability of each option's tokens behind the prompt.

        Raises:
            ValueError: fewer than two options, or an empty one.
        """
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        ids = [tuple(self._ids(option)) for option in options]
        prompt = self._fitting(messages, max(map(len, ids)))
        return self._next_tokens(prompt, ids) if are_short(ids) else self._echoed(prompt, ids)

    def count_tokens(self, text: str) -> int:
        """By the model's tokenizer."""
        return self._count(text) if text else 0

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """By the model's template and tokenizer."""
        return len(self._prompt(messages))

    def _next_tokens(self, prompt: list[int], options: Sequence[Tokens]) -> Choice:
        from vllm import SamplingParams

        tokens = wanted(options)
        sampling = SamplingParams(temperature=0.0, max_tokens=1, logprob_token_ids=tokens)
        first, *rest = beginnings(options)
        # The prompt alone goes first, so that it is in the cache for the others.
        outputs = {first: self._whole([*prompt, *first], sampling)}
        outputs |= self._together({each: [*prompt, *each] for each in rest}, sampling)
        known = {
            each: {token: found.logprob for token, found in output.outputs[0].logprobs[0].items()}
            for each, output in outputs.items()
        }
        return Choice(log_probs(known, options), _usage(list(outputs.values())))

    def _echoed(self, prompt: list[int], options: Sequence[Tokens]) -> Choice:
        """Long texts: the prompt with each behind it, whose own log-probabilities are told."""
        from vllm import SamplingParams

        sampling = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        outputs = self._together({each: [*prompt, *each] for each in options}, sampling)
        scores = tuple(
            sum(
                outputs[option].prompt_logprobs[len(prompt) + n][token].logprob
                for n, token in enumerate(option)
            )
            for option in options
        )
        return Choice(scores, _usage(list(outputs.values())))

    def _together(self, prompts: Mapping[Tokens, list[int]], sampling: Any) -> dict[Tokens, Any]:
        if not prompts:
            return {}
        with ThreadPoolExecutor(len(prompts)) as pool:
            outputs = pool.map(lambda prompt: self._whole(prompt, sampling), prompts.values())
            return dict(zip(prompts, outputs, strict=True))

    def _whole(self, prompt: list[int], sampling: Any) -> Any:
        *_, last = self._outputs(prompt, sampling)
        return last

    def _outputs(self, prompt: list[int], sampling: Any) -> Generator[Any, None, None]:
        """What the engine says to a request, until it is finished; closing it ends the request."""
        request = _Request(str(next(self._numbers)), prompt, sampling.clone())
        if not self._thread.is_alive():
            raise self._gone()
        self._asked.put(request)
        finished = False
        try:
            while not finished:
                output = self._said(request)
                if isinstance(output, Exception):
                    finished = True
                    raise output
                finished = output.finished
                yield output
        finally:
            if not finished:
                self._asked.put(request.name)

    def _said(self, request: _Request) -> Any:
        """What comes next for a request; an engine that ended as it was asked says nothing more."""
        while True:
            alive = self._thread.is_alive()
            try:
                return (
                    request.said.get(timeout=_LOOKS_EVERY_S) if alive else request.said.get_nowait()
                )
            except queue.Empty:
                if not alive:
                    return self._gone()

    def _refusal(self, error: Exception) -> BadReply:
        return BadReply(f"{self.name} refuses the request: {str(error)[:300]}")

    def _gone(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.name} has ended: {self._failed or 'it was closed'}")

    def _serve(self) -> None:
        """The engine's thread: takes requests in, steps, hands outputs out."""
        running: dict[str, _Request] = {}
        try:
            while self._take_in(running):
                for output in self._engine.step():
                    request = running.get(output.request_id)
                    if request is not None:
                        request.said.put(output)
                        if output.finished:
                            del running[output.request_id]
        except Exception as error:  # of the engine, whatever it is: all who wait must hear of it
            self._failed = str(error)
        for request in running.values():
            request.said.put(self._gone())
        self._engine = None

    def _take_in(self, running: dict[str, _Request]) -> bool:
        """Takes in what is asked for; waits where nothing is running. False at the end."""
        wait_s = None if not running else 0.0
        while True:
            try:
                asked = (
                    self._asked.get(timeout=wait_s) if wait_s != 0.0 else (self._asked.get_nowait())
                )
            except queue.Empty:
                return True
            if asked is None:
                return False
            if isinstance(asked, str):
                if running.pop(asked, None) is not None:
                    self._engine.abort_request([asked])
            else:
                self._add(asked, running)
            wait_s = 0.0 if running else None

    def _add(self, request: _Request, running: dict[str, _Request]) -> None:
        try:
            self._engine.add_request(
                request.name, {"prompt_token_ids": request.prompt}, request.sampling
            )
        except self._refusals as error:  # this request cannot be, the others can
            request.said.put(self._refusal(error))
            return
        running[request.name] = request

    def _fitting(self, messages: Sequence[Message], reply_tokens: int) -> list[int]:
        prompt = self._prompt(messages)
        if len(prompt) + reply_tokens > self.context_window:
            raise ContextOverflow(len(prompt), self.context_window, reply_tokens)
        return prompt

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        with self._at_tokenizer:
            text: str = self._tokenizer.apply_chat_template(
                as_json(messages), tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        return self._ids(text)

    def _ids(self, text: str) -> list[int]:
        with self._at_tokenizer:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids


def _check_schema(schema: Mapping[str, Any]) -> None:
    """The engine waits for ever over a schema that is none."""
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise BadOption(f"that is no JSON schema: {error.message[:200]}") from error
    except RecursionError as error:
        raise BadOption("that JSON schema is nested too deep to be checked") from error


def _usage(outputs: Sequence[Any]) -> Usage:
    """Of one call that took several requests."""
    return Usage(
        sum(len(output.prompt_token_ids) for output in outputs),
        sum(output.num_cached_tokens or 0 for output in outputs),
        sum(len(output.outputs[0].token_ids) for output in outputs),
        1,
    )
