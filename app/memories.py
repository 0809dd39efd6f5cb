"""The memories of a library: what gists and trees there are, and how more are made."""

from collections.abc import Callable

from memory.artefacts import Artefacts
from memory.document import Document
from memory.memories import Memories
from memory.options import usual_options
from memory.store import Store
from retrieval.types import Embedder
from serving.model import LanguageModel


def memories_of(
    store: Store,
    document: Callable[[str], Document],
    *,
    model: LanguageModel,
    embedder: Embedder,
    read_only: bool,
    max_words: int = 0,
    fan_out: int = 0,
) -> Memories:
    """Memories over a library's database.

    Args:
        store: The database.
        document: Id to document.
        model: Writes the gists; its ability says how.
        embedder: Whose vectors tell where the matter drifts.
        read_only: Keep nothing of what is made.
        max_words: Most words of an episode; 0 takes what suits the model.
        fan_out: Most children of a tree's node; 0 takes the usual.
    """
    return Memories(
        document=document,
        chunks=store.chunks,
        vectors=lambda key: store.vectors(key, embedder.name),
        model=model,
        artefacts=Artefacts(store, read_only=read_only),
        options=usual_options(model.ability, max_words=max_words, fan_out=fan_out),
    )
