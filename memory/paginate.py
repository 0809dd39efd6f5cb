"""Episodes by the model: it chooses each natural break (ReadAgent, arXiv:2402.09727)."""

from collections.abc import Sequence
from itertools import pairwise

from memory.artefacts import Artefacts, artefact_key
from memory.document import Document, Span
from memory.episodes import tiled
from memory.making import Made, Making
from memory.sentences import sentences
from memory.wordcount import count_words
from serving.asking import pick
from serving.model import LanguageModel, Message, Usage
from serving.prompting import fenced, render, template_text

_MAX_BREAKS = 8
"""Marks shown at a time: their names are single tokens, and a weak model is lost among more."""


def model_episodes(
    document: Document,
    *,
    model: LanguageModel,
    artefacts: Artefacts,
    min_words: int,
    max_words: int,
) -> Made[tuple[Span, ...]]:
    """Episodes that tile the document, one call each; every break is kept as it is found.

    Where the model's choice cannot be had (no usable reply, a window too small, no server), the
    break is the last that fits.

    Args:
        document: What to cut.
        model: Chooses, by log-probability where its server gives them.
        artefacts: Keeps the breaks.
        min_words: Fewest words of an episode but the last.
        max_words: Most words of one.
    """
    text = document.text
    starts = [span.start for span in sentences(text, language=document.language)]
    units = tiled(text, starts, max_words)
    words = [count_words(unit.of(text)) for unit in units]
    total = max(1, 2 * sum(words) // (min_words + max_words))
    usage = Usage()
    episodes: list[Span] = []
    first = 0
    while first < len(units):
        yield Making("episodes", len(episodes), max(total, len(episodes) + 1), usage)
        last, breaks = _breaks(text, units, words, first, min_words, max_words)
        if last < len(units) and len(breaks) > 1:
            place, spent = _chosen(document, units, first, breaks, model, artefacts)
            usage += spent
            last = breaks[place]
        end = units[last].start if last < len(units) else len(text)
        episodes.append(Span(units[first].start, end))
        first = last
    yield Making("episodes", len(episodes), len(episodes), usage)
    return tuple(episodes)


def _breaks(
    text: str,
    units: Sequence[Span],
    words: Sequence[int],
    first: int,
    min_words: int,
    max_words: int,
) -> tuple[int, list[int]]:
    """The first unit that no longer fits, and the units before which the episode may end.

    Breaks lie before paragraphs where enough do, and are spread over the stretch.
    """
    held, last = 0, first
    allowed: list[int] = []
    while last < len(units) and (last == first or held + words[last] <= max_words):
        held += words[last]
        last += 1
        if held >= min_words:
            allowed.append(last)
    if last == len(units):
        return last, []
    paragraphs = [i for i in allowed if "\n" in text[units[i].start - 2 : units[i].start]]
    offered = paragraphs if len(paragraphs) > 1 else allowed
    step = max(1.0, len(offered) / _MAX_BREAKS)
    return last, [offered[int(i * step)] for i in range(min(len(offered), _MAX_BREAKS))]


def _chosen(
    document: Document,
    units: Sequence[Span],
    first: int,
    breaks: Sequence[int],
    model: LanguageModel,
    artefacts: Artefacts,
) -> tuple[int, Usage]:
    """Position of the break that the model takes, and what it cost now."""
    messages = _prompt(document, units, first, breaks)
    key = artefact_key(
        "break",
        source=messages[-1].content,
        prompt=template_text("memory", "paginate"),
        model=model.name,
    )
    kept = artefacts.find(document.id, [key]).get(key)
    if kept is not None:
        return int(kept.data["break"]), Usage()
    picked = pick(model, messages, [str(i) for i in range(1, len(breaks) + 1)])
    if picked.value is None:
        return len(breaks) - 1, picked.usage
    best = max(range(len(breaks)), key=picked.value.__getitem__)
    artefacts.put(document.id, key, kind="break", data={"break": best}, usage=picked.usage)
    return best, picked.usage


def _prompt(
    document: Document, units: Sequence[Span], first: int, breaks: Sequence[int]
) -> list[Message]:
    edges = [units[first].start, *(units[i].start for i in breaks)]
    parts = [fenced(document.text[a:b]) for a, b in pairwise(edges)]
    after = units[breaks[-1]].of(document.text)
    marked = "".join(f"{part.rstrip()}\n«{i}»\n" for i, part in enumerate(parts, 1))
    return render("memory", "paginate", passage=marked + fenced(after))
