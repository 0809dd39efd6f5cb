"""Any chat model of LangChain's, as gistree's language model."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

from serving.errors import BadReply, ContextOverflow, MissingExtra, ModelNotFound, ModelUnavailable
from serving.lettered import LETTERS, letter_scores, lettered
from serving.model import Ability, Choice, Completion, Message, Stream, Usage, drain
from serving.token_estimate import estimate_tokens

try:
    from langchain.chat_models import init_chat_model
    from langchain_core.exceptions import ContextOverflowError, ModelNotFoundError
except ModuleNotFoundError as error:
    raise MissingExtra("a LangChain chat model", "langchain") from error

__all__ = ["LangChainModel"]

_USUAL_WINDOW = 8_192
_MESSAGE_TOKENS = 16
_LIMITS = ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")
_CUT_OFF = {"length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded"}


class LangChainModel:
    """A LangChain chat model behind gistree's protocol.

    What the protocol promises is kept as far as the chat model can: tokens are estimated from
    above (LangChain knows no tokenizer of most models), a schema binds where the chat model has
    structured output and is only asked for where it has not, and ``choose`` works where the
    provider gives log-probabilities of first tokens, as those of letters that stand for the
    options.

    Attributes:
        chat: The chat model itself, for LangChain's own agent.
    """

    def __init__(
        self,
        chat: Any,
        *,
        name: str = "",
        ability: Ability = "large",
        context_window: int = 0,
        sets_temperature: bool = True,
    ) -> None:
        """Takes a chat model.

        Args:
            chat: A LangChain chat model, or "provider:model" for LangChain's ``init_chat_model``,
                which reads the provider's key from the provider's own environment variable.
            name: What the person calls it; "langchain:" and the model's name where not given.
            ability: What it can be trusted with.
            context_window: Tokens; what LangChain's profile of the model says where 0, and 8,192
                where it says nothing.
            sets_temperature: Whether the temperature is set for each call; some models refuse any
                other than their own.

        Raises:
            ModelNotFound: LangChain knows no such model, or its package is not installed.
        """
        self.chat: Any = _named(chat) if isinstance(chat, str) else chat
        known = chat if isinstance(chat, str) else _model_name(self.chat)
        self.name: str = name or f"langchain:{known}"
        self.ability: Ability = ability
        profile = self.chat.profile or {}
        self.context_window: int = (
            context_window or int(profile.get("max_input_tokens") or 0) or _USUAL_WINDOW
        )
        self._sets_temperature = sets_temperature

    def close(self) -> None:
        """Nothing: the chat model is LangChain's, and may be in use elsewhere."""

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Stream:
        """The reply, piece by piece; with a schema, in one piece.

        Raises:
            ContextOverflow: the prompt and its reply do not fit.
            BadReply: the model thought until its tokens were spent.
            ModelNotFound, ModelUnavailable: the provider says so.
        """
        prompt_tokens = self._check_fits(messages, max_tokens)
        chat = self.with_limits(max_tokens, temperature)
        if schema is not None:
            completion = self._bound(chat, messages, prompt_tokens, schema)
            yield completion.text
            return completion
        pieces: list[str] = []
        whole: Any = None
        has_limit = _limit_field(chat) is not None
        finish: Literal["stop", "length"] = "stop"
        with (
            self.explained(prompt_tokens),
            closing(chat.stream(_as_langchain(messages), stop=list(stop) or None)) as chunks,
        ):
            for chunk in chunks:
                whole = chunk if whole is None else whole + chunk
                if piece := str(chunk.text):
                    pieces.append(piece)
                    yield piece
                if not has_limit and estimate_tokens("".join(pieces)) >= 2 * max_tokens:
                    finish = "length"  # this chat model can be held to a limit only from here
                    break
        text = "".join(pieces)
        if _is_cut_off(whole):
            finish = "length"
        if finish == "length" and not text:
            raise BadReply(
                f"{self.name} spent all {max_tokens:,} tokens of its reply on thinking; "
                "turn its thinking off, or take a model that answers at once"
            )
        return Completion(text, self.usage_of(whole, prompt_tokens, text), finish)

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
        """How likely each option's letter is as the first token.

        Raises:
            ValueError: fewer than two options, more than 20, or an empty one.
            BadReply: the chat model gives no log-probabilities; readers then ask for one of the
                options in words, bound by a schema (``serving.asking.pick``).
        """
        if len(options) < 2 or not all(options):
            raise ValueError("choosing needs at least two options, none of them empty")
        if not {"logprobs", "top_logprobs"} <= set(type(self.chat).model_fields):
            raise BadReply(f"{self.name} gives no log-probabilities, which choosing needs")
        asked = lettered(messages, options)
        prompt_tokens = self._check_fits(asked, 1)
        chat = self.with_limits(1, 0.0).model_copy(
            update={"logprobs": True, "top_logprobs": len(LETTERS)}
        )
        with self.explained(prompt_tokens):
            reply = chat.invoke(_as_langchain(asked))
        try:
            top = reply.response_metadata["logprobs"]["content"][0]["top_logprobs"]
        except (KeyError, IndexError, TypeError) as error:
            raise BadReply(
                f"{self.name} gave no log-probabilities, which choosing needs"
            ) from error
        usage = self.usage_of(reply, prompt_tokens, str(reply.text))
        return Choice(letter_scores(top, len(options)), usage)

    def count_tokens(self, text: str) -> int:
        """An estimate that is meant to be too high."""
        return estimate_tokens(text)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """The same estimate, with room for the template."""
        return sum(estimate_tokens(m.content) + _MESSAGE_TOKENS for m in messages)

    def _check_fits(self, messages: Sequence[Message], reply_tokens: int) -> int:
        tokens = self.count_prompt(messages)
        if tokens + reply_tokens > self.context_window:
            raise ContextOverflow(tokens, self.context_window, reply_tokens)
        return tokens

    def with_limits(self, max_tokens: int, temperature: float) -> Any:
        """The chat model with these options, under the names that its class has for them."""
        changes: dict[str, Any] = {}
        if limit := _limit_field(self.chat):
            changes[limit] = max_tokens
        if self._sets_temperature and "temperature" in type(self.chat).model_fields:
            changes["temperature"] = temperature
        return self.chat.model_copy(update=changes)

    def _bound(
        self, chat: Any, messages: Sequence[Message], prompt_tokens: int, schema: Mapping[str, Any]
    ) -> Completion:
        """A reply in the form of a schema."""
        is_object = schema.get("type") == "object"
        inner = dict(schema) if is_object else _in_an_object(schema)
        named = {"title": "reply", "description": "The reply.", **inner}
        with self.explained(prompt_tokens):
            try:
                structured = chat.with_structured_output(named, include_raw=True)
            except NotImplementedError:  # by this class of chat models
                reply = chat.invoke(_as_langchain(_asking_for(messages, schema)))
                text = _unfenced(str(reply.text))
            else:
                try:
                    result = structured.invoke(_as_langchain(messages))
                except Exception as error:  # openai's LengthFinishReasonError, if that is installed
                    cut = getattr(error, "completion", None)
                    if cut is None:
                        raise
                    return _cut_completion(cut, prompt_tokens)
                reply, parsed = result["raw"], result["parsed"]
                if not is_object and isinstance(parsed, dict):
                    parsed = parsed.get("reply")
                said = str(reply.text)
                text = said if parsed is None else json.dumps(parsed, ensure_ascii=False)
        usage = self.usage_of(reply, prompt_tokens, text)
        return Completion(text, usage, "length" if _is_cut_off(reply) else "stop")

    @contextmanager
    def explained(self, prompt_tokens: int) -> Generator[None, None, None]:
        """Failures of the provider as failures that gistree explains."""
        try:
            yield
        except ContextOverflowError as error:
            raise ContextOverflow(prompt_tokens, self.context_window) from error
        except Exception as error:  # providers' packages have no class of errors in common
            if isinstance(error, ModelNotFoundError) or _status(error) == 404:
                raise ModelNotFound(f"{self.name} is not there: {error}") from error
            raise ModelUnavailable(
                f"{self.name} failed ({type(error).__name__}): {error}"
            ) from error

    def usage_of(self, reply: Any, prompt_tokens: int, text: str) -> Usage:
        """What the provider counted, or else what is estimated here."""
        counted = getattr(reply, "usage_metadata", None)
        if not counted:
            return Usage(prompt_tokens, 0, estimate_tokens(text), 1)
        details = counted.get("input_token_details") or {}
        return Usage(
            int(counted["input_tokens"]),
            int(details.get("cache_read") or 0),
            int(counted["output_tokens"]),
            1,
        )


def _named(spec: str) -> Any:
    try:
        return init_chat_model(spec)
    except (ImportError, ValueError) as error:
        raise ModelNotFound(
            f"LangChain cannot open {spec!r}: {error}; name it as provider:model, for example "
            "langchain:openai:gpt-4.1, and install the provider's package"
        ) from error
    except Exception as error:  # a provider's package without its key; each has its own class
        raise ModelUnavailable(f"LangChain cannot open {spec!r}: {error}") from error


def _model_name(chat: Any) -> str:
    return str(getattr(chat, "model_name", "") or getattr(chat, "model", "") or chat._llm_type)


def _limit_field(chat: Any) -> str | None:
    return next((name for name in _LIMITS if name in type(chat).model_fields), None)


def _as_langchain(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def _in_an_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Providers bind objects only; another value is put into a field of one."""
    return {
        "type": "object",
        "properties": {"reply": dict(schema)},
        "required": ["reply"],
        "additionalProperties": False,
    }


def _asking_for(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    form = json.dumps(schema, ensure_ascii=False)
    asked = f"{messages[-1].content}\n\nReply with JSON of this schema and nothing else: {form}"
    return [*messages[:-1], Message("user", asked)]


def _unfenced(text: str) -> str:
    """JSON without the Markdown fence that chat models like to put around it."""
    text = text.strip()
    if text.startswith("```"):
        text = text.removesuffix("```").partition("\n")[2]
    return text.strip()


def _is_cut_off(reply: Any) -> bool:
    said = getattr(reply, "response_metadata", None) or {}
    reasons = (said.get(key) for key in ("finish_reason", "stop_reason", "done_reason"))
    return any(reason in _CUT_OFF for reason in reasons)


def _cut_completion(completion: Any, prompt_tokens: int) -> Completion:
    """What openai's package throws where a bound reply does not end within its tokens."""
    text = str(completion.choices[0].message.content or "")
    counted = completion.usage
    if counted is None:
        return Completion(text, Usage(prompt_tokens, 0, estimate_tokens(text), 1), "length")
    cached = getattr(counted.prompt_tokens_details, "cached_tokens", None) or 0
    usage = Usage(counted.prompt_tokens, cached, counted.completion_tokens, 1)
    return Completion(text, usage, "length")


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
