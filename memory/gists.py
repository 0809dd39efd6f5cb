"""Gist memory: each episode shortened, so that a long document is seen at once (ReadAgent)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from memory.artefacts import Artefacts
from memory.document import Document, Span
from memory.making import Made, Making, in_parallel
from memory.shorten import SHORT_WORDS, By, Short, Shortening, kept_short, shorten
from memory.wordcount import count_words
from serving.model import LanguageModel, Usage, num_at_once

_SHARE = 0.25
_MOST_WORDS = 100


@dataclass(frozen=True, slots=True)
class Gist:
    """The short version of one episode.

    Attributes:
        number: The episode's position, from 0.
        span: The episode, in the document's text.
        text: The short version, on one line.
        words: Its words.
        source_words: The episode's words.
        by: "model", "extract" (sentences of the episode) or "source" (all of a short episode).
        fault: Why the model's own could not be used; empty where it could, or was not asked.
    """

    number: int
    span: Span
    text: str
    words: int
    source_words: int
    by: By
    fault: str = ""


@dataclass(frozen=True, slots=True)
class GistMemory:
    """All gists of a document.

    Attributes:
        document_id: Whose.
        gists: In order; their spans tile the document.
        usage: Tokens that were spent on what was missing.
    """

    document_id: str
    gists: tuple[Gist, ...]
    usage: Usage = Usage()

    @property
    def compression(self) -> float:
        """Percent of the words that the gists do without: 100 * (1 - gist words / words)."""
        words = sum(gist.source_words for gist in self.gists)
        return 100 * (1 - sum(gist.words for gist in self.gists) / words) if words else 0.0

    def at(self, offset: int) -> Gist:
        """The gist of the episode that holds a character."""
        low, high = 0, len(self.gists) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.gists[middle].span.start <= offset:
                low = middle
            else:
                high = middle - 1
        return self.gists[low]


def gist_work(document: Document, episode: Span) -> Shortening:
    """What there is to shorten in an episode."""
    return Shortening("gist", episode.of(document.text), _SHARE, _MOST_WORDS)


def needs_model(work: Shortening) -> bool:
    """Whether a model has anything to shorten."""
    return count_words(work.source) > SHORT_WORDS


def make_gists(
    document: Document, episodes: Sequence[Span], *, model: LanguageModel, artefacts: Artefacts
) -> Made[GistMemory]:
    """The gist memory, made where it is missing; as many calls at a time as the model gains from.

    Raises:
        ModelUnavailable: what was finished is kept.
    """
    works = [gist_work(document, episode) for episode in episodes]
    shorts = [None if needs_model(work) else work.without_model() for work in works]
    keys = {i: work.key(model) for i, work in enumerate(works) if shorts[i] is None}
    kept = artefacts.find(document.id, list(keys.values()))
    for i, key in keys.items():
        if key in kept:
            shorts[i] = kept_short(kept[key].data)
    missing = [i for i, short in enumerate(shorts) if short is None]
    usage = Usage()
    yield Making("gists", len(works) - len(missing), len(works))
    jobs = [partial(_job, works[i], document.id, model, artefacts) for i in missing]
    done = len(works) - len(missing)
    for position, short, spent in in_parallel(jobs, num_at_once=num_at_once(model)):
        shorts[missing[position]] = short
        usage += spent
        done += 1
        yield Making("gists", done, len(works), usage)
    return GistMemory(
        document.id,
        tuple(
            _gist(i, episode, work, short)
            for i, (episode, work, short) in enumerate(zip(episodes, works, shorts, strict=True))
            if short is not None
        ),
        usage,
    )


def _job(
    work: Shortening, document_id: str, model: LanguageModel, artefacts: Artefacts, stop: Event
) -> tuple[Short, Usage]:
    return shorten(work, document_id, model=model, artefacts=artefacts, stop=stop)


def _gist(number: int, episode: Span, work: Shortening, short: Short) -> Gist:
    return Gist(
        number,
        episode,
        short.text,
        count_words(short.text),
        count_words(work.source),
        short.by,
        short.fault,
    )


def extract_gists(document: Document, episodes: Sequence[Span]) -> GistMemory:
    """The gist memory without any call: the most central sentences of each episode."""
    works = [gist_work(document, episode) for episode in episodes]
    return GistMemory(
        document.id,
        tuple(
            _gist(i, episode, work, work.without_model())
            for i, (episode, work) in enumerate(zip(episodes, works, strict=True))
        ),
    )
