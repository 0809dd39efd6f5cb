"""The memories of a library's documents: made when first asked for, from then on kept."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from memory.artefacts import Artefacts, artefact_key
from memory.document import Document, Span
from memory.episodes import drift_episodes
from memory.gists import GistMemory, extract_gists, gist_work, make_gists, needs_model
from memory.making import Made, Making
from memory.options import MemoryOptions
from memory.paginate import model_episodes
from memory.shorten import Shortening
from memory.tree import MemoryTree, make_tree, num_summaries
from serving.model import LanguageModel, Usage

T = TypeVar("T")

_SUMMARY_TOKENS = 600  # of a summary's prompt, about: some gists and the instructions


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is still to be made of a memory; what is kept already costs nothing.

    Attributes:
        calls: Calls of the model, at most.
        prompt_tokens: Of all their prompts, about.
        completion_tokens: Of all their replies, at most.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Memories:
    """Makes gist memories and memory trees.

    Attributes:
        document: Id to document.
        chunks: Id to the document's chunks, ascending.
        vectors: Id to their unit vectors, or None where there are none.
        model: Writes them.
        artefacts: Keeps every finished call.
        options: How they are made.
    """

    document: Callable[[str], Document]
    chunks: Callable[[str], Sequence[Span]]
    vectors: Callable[[str], NDArray[np.float32] | None]
    model: LanguageModel
    artefacts: Artefacts
    options: MemoryOptions

    def episodes(self, document_id: str) -> Made[tuple[Span, ...]]:
        """A document's episodes; they tile its text.

        Once cut they stay: another embedder would cut elsewhere, and the gists over them would
        have to be made again.
        """
        document = self.document(document_id)
        if self.options.paginate == "model":
            return (yield from self._paginated(document))
        kept = self._kept_episodes(document)
        if kept is not None:
            return kept
        episodes = self._drift(document)
        starts = [episode.start for episode in episodes]
        key = self._episodes_key(document)
        self.artefacts.put(document_id, key, kind="episodes", data=starts, usage=Usage())
        return episodes

    def _paginated(self, document: Document) -> Made[tuple[Span, ...]]:
        return model_episodes(
            document,
            model=self.model,
            artefacts=self.artefacts,
            min_words=self.options.min_words,
            max_words=self.options.max_words,
        )

    def _episodes_key(self, document: Document) -> str:
        words = {"min_words": self.options.min_words, "max_words": self.options.max_words}
        return artefact_key("episodes", source=document.text, options=words)

    def _kept_episodes(self, document: Document) -> tuple[Span, ...] | None:
        """The episodes if they are known without a call."""
        if self.options.paginate == "model":
            try:
                return finished(self._without_calls()._paginated(document))
            except _Missing:
                return None
        key = self._episodes_key(document)
        kept = self.artefacts.find(document.id, [key]).get(key)
        if kept is None:
            return None
        return tuple(Span(a, b) for a, b in pairwise([*kept.data, len(document.text)]))

    def _likely_episodes(self, document: Document) -> tuple[tuple[Span, ...], int]:
        """The episodes, or as many as there may be; and the calls that cutting still takes."""
        kept = self._kept_episodes(document)
        if kept is not None:
            return kept, 0
        episodes = self._drift(document)
        return episodes, len(episodes) if self.options.paginate == "model" else 0

    def _drift(self, document: Document) -> tuple[Span, ...]:
        return drift_episodes(
            document,
            self.chunks(document.id),
            self.vectors(document.id),
            min_words=self.options.min_words,
            max_words=self.options.max_words,
        )

    def gists(self, document_id: str) -> Made[GistMemory]:
        """A document's gist memory.

        Raises:
            ModelUnavailable: what was finished is kept.
        """
        document = self.document(document_id)
        episodes = yield from self.episodes(document_id)
        if self.options.gists == "extract":
            return extract_gists(document, episodes)
        return (
            yield from make_gists(document, episodes, model=self.model, artefacts=self.artefacts)
        )

    def tree(self, document_id: str) -> Made[MemoryTree]:
        """A document's memory tree, and with it the gist memory whose gists are its leaves.

        Raises:
            ModelUnavailable: what was finished is kept.
        """
        gists = yield from self.gists(document_id)
        return (yield from self._grown(gists, None if self._no_prose else self.model))

    def _grown(self, gists: GistMemory, model: LanguageModel | None) -> Made[MemoryTree]:
        return make_tree(
            self.document(gists.document_id),
            gists,
            model=model,
            artefacts=self.artefacts,
            fan_out=self.options.fan_out,
            shape=self.options.shape,
        )

    @property
    def _no_prose(self) -> bool:
        return self.options.gists == "extract"

    def gists_without_model(self, document_id: str) -> GistMemory:
        """The gist memory out of the document's own sentences, without any call."""
        document = self.document(document_id)
        return extract_gists(document, self._kept_episodes(document) or self._drift(document))

    def tree_without_model(self, document_id: str) -> MemoryTree:
        """The memory tree likewise."""
        return finished(self._grown(self.gists_without_model(document_id), None))

    def kept_gists(self, document_id: str) -> GistMemory | None:
        """The gist memory if all of it is there; the model is not called."""
        try:
            return finished(self._without_calls().gists(document_id))
        except _Missing:
            return None

    def kept_tree(self, document_id: str) -> MemoryTree | None:
        """The memory tree likewise."""
        try:
            return finished(self._without_calls().tree(document_id))
        except _Missing:
            return None

    def _without_calls(self) -> "Memories":
        return replace(self, model=cast(LanguageModel, _NoCalls(self.model)))

    def at_hand(self, document_id: str) -> GistMemory:
        """The gist memory if it is there, else one of the document's own sentences."""
        return self.kept_gists(document_id) or self.gists_without_model(document_id)

    def num_calls(self, document_id: str, *, tree: bool) -> int:
        """Calls that are still to be made for a memory, at most; 0 where it is there."""
        kept = self.kept_tree(document_id) if tree else self.kept_gists(document_id)
        if kept is not None:
            return 0
        document, options = self.document(document_id), self.options
        episodes, paging = self._likely_episodes(document)
        missing = len(self._missing(document, episodes))
        summaries = num_summaries(document, episodes, options.fan_out, options.shape) if tree else 0
        return missing + paging + summaries

    def _missing(self, document: Document, episodes: Sequence[Span]) -> list[Shortening]:
        works = [gist_work(document, episode) for episode in episodes]
        works = [work for work in works if needs_model(work)]
        keys = [work.key(self.model) for work in works]
        kept = self.artefacts.find(document.id, keys)
        return [work for work, key in zip(works, keys, strict=True) if key not in kept]

    def estimate(self, document_id: str, *, tree: bool) -> Estimate:
        """What making a memory will take.

        Args:
            document_id: Of the document.
            tree: Whether the tree is meant, or the gists alone.
        """
        calls = self.num_calls(document_id, tree=tree)
        if not calls:
            return Estimate(0, 0, 0)
        document = self.document(document_id)
        episodes, paging = self._likely_episodes(document)
        missing = self._missing(document, episodes)
        prompt = sum(self.model.count_prompt(work.messages) for work in missing)
        if paging:
            prompt += self.model.count_tokens(document.text)
        summaries = calls - len(missing)
        return Estimate(
            calls,
            prompt + _SUMMARY_TOKENS * summaries,
            sum(work.max_tokens for work in missing) + _SUMMARY_TOKENS // 4 * summaries,
        )


class _Missing(Exception):
    """A memory is not wholly there. It is never seen outside."""


class _NoCalls:
    """Stands in for a model under whose name memories are looked up, and is never called."""

    num_at_once = 1

    def __init__(self, model: LanguageModel) -> None:
        self.name, self.ability = model.name, model.ability

    def __getattr__(self, method: str) -> Any:
        raise _Missing(method)


def finished(making: Generator[Making, None, T]) -> T:
    """The memory, when all progress has been made."""
    while True:
        try:
            next(making)
        except StopIteration as end:
            made: T = end.value
            return made
