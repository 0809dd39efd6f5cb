"""LangChain's agent as the loop, for chat models with tool calls of their own."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from agents.answering import MAX_QUESTION_CHARS
from agents.desk import Desk
from agents.looking import Gathered, Limits
from agents.prompting import fenced, render
from agents.steps import Called, Degraded, Step
from agents.tools import TOOLS, Seen, Tool, outline
from retrieval.types import Passage
from serving.errors import (
    BadOption,
    BadReply,
    ContextOverflow,
    MissingExtra,
    ModelNotFound,
    ModelUnavailable,
)
from serving.model import Usage

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.tools import StructuredTool

    from serving.backends.langchain import LangChainModel
except ModuleNotFoundError as error:
    raise MissingExtra("the loop 'langchain' of the reader agent", "langchain") from error

__all__ = ["LangChainLoop"]

_REPLY_TOKENS = 512
_SHOWN_CHARS = 600  # of a result, in the step


@dataclass(frozen=True, slots=True)
class LangChainLoop:
    """The model calls tools until it stops by itself, or a limit is reached.

    ``Limits.enough`` has no part in it: whether it has seen enough, the model says by calling no
    more tools. What it says then is not the answer: that is written, and checked, as every
    reader's is.
    """

    def look(self, desk: Desk, question: str, limits: Limits) -> Generator[Step, None, Gathered]:
        """Called for each tool used; Degraded where the model failed.

        Raises:
            BadOption: the desk's model is none of LangChain's.
        """
        model = desk.model
        if not isinstance(model, LangChainModel):
            raise BadOption(
                f"the loop 'langchain' needs a chat model of LangChain's, and {model.name} is "
                "none; name one as langchain:provider:model, or take loop=schema"
            )
        system, user = render(
            "agent-tools",
            documents=fenced(outline(desk, {}).text),
            question=question[:MAX_QUESTION_CHARS],
        )
        agent = create_agent(
            model.with_limits(_REPLY_TOKENS, 0.0),
            tools=[_as_langchain(tool, desk) for tool in TOOLS],
            system_prompt=system.content,
            middleware=[_Checked(model)],
        )
        seen = _SeenSoFar(model, model.count_prompt([system, user]))
        config = {"recursion_limit": 4 * limits.max_steps + 10}
        steps = agent.stream({"messages": [("user", user.content)]}, config, stream_mode="updates")
        try:
            for update in steps:
                for message in _messages(update):
                    if message.type == "tool":
                        yield seen.tool(message)
                    else:
                        seen.reply(message)
                if seen.num_calls >= limits.max_steps or seen.tokens >= limits.gather_tokens:
                    break
        except (ContextOverflow, ModelNotFound, ModelUnavailable) as failure:
            yield Degraded("answers from what was seen so far", str(failure))
        finally:
            steps.close()
        return Gathered(tuple(seen.passages), seen.usage)


class _SeenSoFar:
    """What the conversation has brought."""

    def __init__(self, model: LangChainModel, prompt_tokens: int) -> None:
        self.passages: list[Passage] = []
        self.usage = Usage()
        self.tokens = 0
        self.num_calls = 0
        self._model = model
        self._prompt_tokens = prompt_tokens
        self._arguments: dict[str, dict[str, Any]] = {}

    def reply(self, message: Any) -> None:
        """Counts a reply of the model's, and remembers its calls."""
        self.usage += self._model.usage_of(
            message, self._prompt_tokens + self.tokens, str(message.text)
        )
        self._arguments |= {call["id"]: call["args"] for call in message.tool_calls}

    def tool(self, message: Any) -> Called:
        """Keeps what a tool has shown."""
        self.num_calls += 1
        text = str(message.text)
        self.tokens += self._model.count_tokens(text)
        latest = 1.0 + self.num_calls / 10  # what was looked for last was asked for best
        if isinstance(message.artifact, Seen):
            self.passages += [
                replace(passage, score=latest - rank / 100)
                for rank, passage in enumerate(message.artifact.passages)
            ]
            text = message.artifact.text
        arguments = self._arguments.get(message.tool_call_id, {})
        said = ", ".join(str(value) for value in arguments.values())
        return Called(str(message.name), said, " ".join(text.split())[:_SHOWN_CHARS])


class _Checked(AgentMiddleware):
    """The agent's calls of the model fail as gistree's own do."""

    def __init__(self, model: LangChainModel) -> None:
        super().__init__()
        self._model = model

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """One call; what does not fit the window is not sent."""
        tokens = sum(
            self._model.count_tokens(f"{message.text}{json.dumps(_calls(message))}")
            for message in request.messages
        )
        if tokens + _REPLY_TOKENS > self._model.context_window:
            raise ContextOverflow(tokens, self._model.context_window, _REPLY_TOKENS)
        with self._model.explained(tokens):
            return handler(request)


def _as_langchain(tool: Tool, desk: Desk) -> Any:
    """A tool whose artifact is what was seen; a bad argument is told to the model."""

    def run(**arguments: Any) -> tuple[str, Seen | None]:
        try:
            seen = tool.run(desk, arguments)
        except BadReply as mistake:
            return f"This call cannot be used: {mistake}", None
        return f"<<<\n{fenced(seen.text)}\n>>>", seen

    return StructuredTool(
        name=tool.name,
        description=tool.does,
        args_schema=dict(tool.parameters),
        func=run,
        response_format="content_and_artifact",
    )


def _messages(update: Any) -> list[Any]:
    """The new messages in an update of the graph's."""
    states = [state for state in update.values() if isinstance(state, dict)]
    return [message for state in states for message in state.get("messages", ())]


def _calls(message: Any) -> list[Any]:
    return [call["args"] for call in getattr(message, "tool_calls", ())]
