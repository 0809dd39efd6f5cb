"""What can go wrong, as one tree; each message says what happened and what to do.

GistreeError
├── MissingExtra            an optional package is not installed
├── UnknownName             no plug-in or model of that name; lists the known ones
├── ModelError
│   ├── ModelNotFound       nothing at that path, name or server
│   ├── ModelUnavailable    the server does not answer, or refuses
│   ├── ContextOverflow     the prompt is longer than the model's window
│   ├── BadReply            the reply does not have the form that was asked for
│   └── FetchFailed         a model file could not be had, or has the wrong hash
├── DocumentError           memory/errors.py
├── LibraryError            memory/errors.py
└── RetrievalError          retrieval/errors.py
"""

from collections.abc import Iterable


class GistreeError(Exception):
    """Any failure that gistree explains."""


class MissingExtra(GistreeError):
    """An optional package is needed and absent."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}; install it: pip install 'gistree[{extra}]'"
        )
        self.extra = extra


class UnknownName(GistreeError):
    """No such plug-in, reader or model."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.known = tuple(sorted(known))
        super().__init__(f"no {kind} is named {name!r}; known: {', '.join(self.known) or 'none'}")


class BadOption(GistreeError):
    """An option of a plug-in has a value that it cannot have."""


class ModelError(GistreeError):
    """The language model cannot do what was asked."""


class ModelNotFound(ModelError):
    """There is no model at that path, name or address."""


class ModelUnavailable(ModelError):
    """The model's server does not answer, or answers with a failure."""


class ContextOverflow(ModelError):
    """The prompt, with room for its reply, does not fit the model's window."""

    def __init__(self, prompt_tokens: int, context_window: int, reply_tokens: int = 0) -> None:
        room = f", its reply may take {reply_tokens:,}" if reply_tokens else ""
        super().__init__(
            f"the prompt has {prompt_tokens:,} tokens{room}, and the window is "
            f"{context_window:,}; lower budget_tokens or take a model with a longer window"
        )
        self.prompt_tokens = prompt_tokens
        self.context_window = context_window


class BadReply(ModelError):
    """The model's reply does not have the form that was asked for."""


class FetchFailed(ModelError):
    """A model's file could not be fetched, or is not the file that the catalogue names."""
