"""What the page of the state shows: models to choose from, the index, how much a cache spares."""

from dataclasses import dataclass

from app.conversations import answer_in
from app.doctor import Finding
from app.library import CHUNK_TOKENS, Library
from app.models import choose_model
from app.overview import room_bytes, size
from app.settings import Settings
from serving.catalogue import catalogue
from serving.errors import GistreeError

_RECENT_CHATS = 20


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model of the catalogue, as a list shows it.

    Attributes:
        name: For commands and settings.
        title: As its makers call it.
        what: "tiny", "small" or "large" for a language model, else its kind.
        size_bytes: On the disk.
        window: Tokens that it reads at once.
        licence: Of its weights.
        is_llm: Whether it answers.
        is_here: Whether it is in the model cache.
        is_used: Whether it is the one in use.
    """

    name: str
    title: str
    what: str
    size_bytes: int
    window: int
    licence: str
    is_llm: bool
    is_here: bool
    is_used: bool


def model_lines(settings: Settings) -> tuple[ModelLine, ...]:
    """The models that can be fetched or are here, the language models first."""
    try:
        used = choose_model(settings).name
    except GistreeError:
        used = ""
    lines = [
        ModelLine(
            name=card.name,
            title=card.title,
            what=card.ability if card.kind == "llm" else card.kind,
            size_bytes=card.size_bytes,
            window=card.window,
            licence=card.licence,
            is_llm=card.kind == "llm",
            is_here=card.is_in(settings.models),
            is_used=card.name in (used, settings.embedder),
        )
        for card in catalogue().values()
        if card.files
    ]
    return tuple(sorted(lines, key=lambda line: (not line.is_llm, line.size_bytes)))


def examine_library(library: Library) -> list[Finding]:
    """The library's own state: index, room, what a prefix cache spared of late."""
    entries = library.list()
    # What other embedders are called in the index is known once they are loaded.
    unread = library.without_vectors() if library.settings.embedder in catalogue() else 0
    index = f"{len(entries):,} documents in chunks of at most {CHUNK_TOKENS} tokens"
    return [
        Finding("library", str(library.place)),
        Finding(
            "index",
            f"{index}, by {library.settings.embedder}",
            f"{unread:,} documents are indexed anew at the next question" if unread else "",
        ),
        Finding("room on the disk", size(room_bytes(library))),
        Finding("prompt tokens from the cache", _cached(library)),
    ]


def _cached(library: Library) -> str:
    prompt = cached = 0
    talks = library.conversations
    for chat in talks.chats()[:_RECENT_CHATS]:
        for turn in talks.turns(chat.id):
            answer = answer_in(turn)
            if answer is not None:
                prompt += answer.usage.prompt_tokens
                cached += answer.usage.cached_tokens
    if not prompt:
        return "nothing asked yet"
    return f"{cached / prompt:.0%} of {prompt:,} in the latest chats"
