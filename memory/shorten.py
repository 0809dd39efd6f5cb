"""One short version by the model: checked, asked for again once, else taken from the source."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from memory.artefacts import Artefacts, artefact_key
from memory.extract import extract
from memory.faults import fault, tidy
from memory.making import say
from memory.sentences import sentences
from memory.wordcount import count_words
from serving.errors import BadReply, ContextOverflow
from serving.model import Completion, LanguageModel, Message, Usage
from serving.prompting import fenced, render, template_text, text_of

By = Literal["model", "extract", "source"]
"""Who wrote a short version: the model; nobody, it is sentences of the source (because the model
was not asked, or what it wrote twice could not be used); or it is the whole short source."""

SHORT_WORDS = 40
"""A text of no more words is its own short version."""

_LEAST_WORDS = 25
_TOKENS_PER_WORD = 2  # of the short version; what is cut off loses its last sentence
_SHOWN_BACK = 600  # characters of a bad reply that the model is shown


@dataclass(frozen=True, slots=True)
class Short:
    """A short version of a text.

    Attributes:
        text: It, on one line.
        by: Who wrote it.
        fault: Why the model's own could not be used, in words; empty where it could.
    """

    text: str
    by: By
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Shortening:
    """One text to shorten.

    Attributes:
        prompt: File of ``memory/prompts/``: "gist" or "summary".
        source: The text.
        share: How many words of it may stay.
        most_words: And no more than these.
    """

    prompt: Literal["gist", "summary"]
    source: str
    share: float
    most_words: int

    @property
    def words(self) -> int:
        """Most words of the short version."""
        return max(_LEAST_WORDS, min(self.most_words, round(self.share * count_words(self.source))))

    @property
    def max_tokens(self) -> int:
        """Most tokens of the reply."""
        return _TOKENS_PER_WORD * self.words + 16

    @property
    def messages(self) -> list[Message]:
        """The prompt."""
        slot = {"gist": "passage", "summary": "parts"}[self.prompt]
        filled = {slot: fenced(self.source.strip()), "words": str(self.words)}
        return render("memory", self.prompt, **filled)

    def key(self, model: LanguageModel) -> str:
        """Under which the result is kept."""
        return artefact_key(
            self.prompt,
            source=self.source,
            prompt=template_text("memory", self.prompt) + template_text("memory", "again"),
            model=model.name,
            options={"words": self.words},
        )

    def without_model(self) -> Short:
        """The most central sentences, or the text itself where it is short."""
        if count_words(self.source) <= SHORT_WORDS:
            return Short(" ".join(self.source.split()), "source")
        return Short(extract(self.source, self.words), "extract")


def kept_short(data: Any) -> Short:
    """A short version as it was kept."""
    return Short(str(data["text"]), data["by"], str(data.get("fault", "")))


def shorten(
    work: Shortening, document_id: str, *, model: LanguageModel, artefacts: Artefacts, stop: Event
) -> tuple[Short, Usage]:
    """Has the model shorten a text, and keeps the result.

    Raises:
        ModelUnavailable: nothing is kept then.
        Stopped: likewise.
    """
    short, usage = _asked(work, model, stop)
    data = {"text": short.text, "by": short.by, "fault": short.fault}
    artefacts.put(document_id, work.key(model), kind=work.prompt, data=data, usage=usage)
    return short, usage


def _asked(work: Shortening, model: LanguageModel, stop: Event) -> tuple[Short, Usage]:
    messages: Sequence[Message] = work.messages
    usage, wrong = Usage(), ""
    for _ in range(2):
        try:
            reply = say(model, messages, max_tokens=work.max_tokens, stop=stop)
        except (ContextOverflow, BadReply) as error:
            wrong = wrong or str(error)
            break
        usage += reply.usage
        text = _finished(reply)
        wrong = fault(text, work.source)
        if not wrong:
            return Short(text, "model"), usage
        again = text_of("memory", "again", fault=wrong, words=str(work.words))
        bad = reply.text[:_SHOWN_BACK].strip() or "(nothing)"
        messages = [*work.messages, Message("assistant", bad), Message("user", again)]
    return Short(extract(work.source, work.words), "extract", wrong), usage


def _finished(reply: Completion) -> str:
    """The reply, without the sentence that was cut off where it ran too long."""
    text = tidy(reply.text)
    if reply.finish == "length":
        whole = sentences(text)[:-1]
        text = text[: whole[-1].end] if whole else text
    return text
