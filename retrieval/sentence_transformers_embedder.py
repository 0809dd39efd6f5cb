"""Any sentence-transformers model as embedder, by name on the hub or by folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from retrieval.types import Vectors
from serving.errors import MissingExtra, ModelNotFound

_PASSAGE_PROMPTS = ("document", "passage", "corpus")
_QUERY_PROMPTS = ("query",)


class SentenceTransformersEmbedder:
    """Vectors by a model of the sentence-transformers library, with the model's own prompts.

    A passage longer than the model's window is cut there, as that library does. Every method may
    be called from several threads.

    Args:
        model: Its name on the hub ("BAAI/bge-m3") or its folder.
        device: "cpu", "cuda:0" …; the best one by default.
        batch_size: Passages in one model call.
        local_only: Never asks the hub; the model must be a folder or in the hub's cache.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        ModelNotFound: there is no such model, or it cannot be fetched.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 32,
        local_only: bool = False,
    ) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as missing:
            raise MissingExtra(f"the embedder {str(model)!r}", "sentence-transformers") from missing

        folder = Path(model).expanduser()
        place = str(folder) if folder.is_dir() else str(model)
        try:
            self._model: Any = SentenceTransformer(
                place, device=device, local_files_only=local_only
            )
        except (OSError, ValueError) as failure:
            raise ModelNotFound(
                f"no embedding model {str(model)!r}: it is neither a folder with a "
                f"sentence-transformers model nor a name that the hub gives ({failure})"
            ) from failure
        self._batch_size = batch_size
        self.name = f"sentence-transformers:{folder.resolve() if folder.is_dir() else model}"
        self.dim = len(self.embed_query("dimension"))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, float32 [len(texts), dim]."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return self._encode(texts, _PASSAGE_PROMPTS, "encode_document")

    def embed_query(self, query: str) -> Vectors:
        """Unit vector of a query, float32 [dim]."""
        return cast(Vectors, self._encode([query], _QUERY_PROMPTS, "encode_query")[0])

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's tokenizer, special tokens not counted."""
        if not texts:
            return []
        rows = self._model.tokenizer(
            [_utf8(text) for text in texts], add_special_tokens=False, verbose=False
        )["input_ids"]
        return [len(row) for row in rows]

    def _encode(self, texts: Sequence[str], prompts: Sequence[str], task: str) -> Vectors:
        """Unit vectors by the library's method for the task (older versions lack it)."""
        encode = getattr(self._model, task, self._model.encode)
        # The library fills in empty prompts, which would hide the one that the model has.
        named = next((name for name in prompts if self._model.prompts.get(name)), None)
        return np.asarray(
            encode(
                [_utf8(text) for text in texts],
                batch_size=self._batch_size,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
                prompt_name=named,
            ),
            np.float32,
        )


def _utf8(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()
