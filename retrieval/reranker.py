"""A cross-encoder that reads question and passage together, by name on the hub or by folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from serving.errors import MissingExtra, ModelNotFound


class Reranker(Protocol):
    """Judges how well each passage answers a question."""

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """One score a passage, higher is better; comparable within one call only."""
        ...


class CrossEncoderReranker:
    """A reranking model of the sentence-transformers library. May be called from several threads.

    Args:
        model: Its name on the hub ("BAAI/bge-reranker-v2-m3") or its folder.
        device: "cpu", "cuda:0" …; the best one by default.
        batch_size: Pairs in one model call.
        local_only: Never asks the hub; the model must be a folder or in the hub's cache.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        ModelNotFound: there is no such model, or it does not give one score a pair.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 16,
        local_only: bool = False,
    ) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as missing:
            raise MissingExtra(f"the reranker {str(model)!r}", "sentence-transformers") from missing

        folder = Path(model).expanduser()
        place = str(folder) if folder.is_dir() else str(model)
        try:
            self._model: Any = CrossEncoder(place, device=device, local_files_only=local_only)
        except (OSError, ValueError) as failure:
            raise ModelNotFound(
                f"no reranking model {str(model)!r}: it is neither a folder with a cross-encoder "
                f"nor a name that the hub gives ({failure})"
            ) from failure
        labels = int(self._model.config.num_labels)
        if labels != 1:
            raise ModelNotFound(
                f"the model {str(model)!r} gives {labels} scores a pair and a reranker gives one; "
                "take one that was trained for ranking"
            )
        self._batch_size = batch_size
        self.name = f"cross-encoder:{folder.resolve() if folder.is_dir() else model}"

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """One score a passage, higher is better; comparable within one call only."""
        if not passages:
            return []
        pairs = [(_utf8(question), _utf8(passage)) for passage in passages]
        found = self._model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
        return [float(score) for score in found]


def _utf8(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()
