"""The default embedder: a small sentence model as an ONNX file, on the CPU, without torch."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from retrieval.cores import usable_cores
from retrieval.int8_graph import multiplies_int8, with_int8_products
from retrieval.types import Vectors
from serving.errors import ModelNotFound

BATCH_TOKENS = 256
"""Tokens of one model call in float32. By measurement (all-MiniLM-L6-v2, 2 cores): chunks go
fastest one by one, each on a core of its own, 1.8 times as fast on a busy machine as one call on
all cores; sentences go twice as fast ten at a time; larger batches outgrow the cores' caches."""


class OnnxEmbedder:
    """Sentence vectors by mean pooling: all-MiniLM-L6-v2 and its kin (arXiv:1908.10084).

    A text longer than the model's window is read window by window, and its vector is the mean over
    all its tokens: nothing of it is left out. Every method may be called from several threads.

    Args:
        model: ONNX file whose first output is [batch, tokens, dim].
        tokenizer: The model's tokenizer.json.
        name: Identifies model and precision; vectors of different names never meet.
        max_tokens: The model's window, special tokens included.
        num_threads: CPU threads; all cores that this process may use by default.

    Raises:
        ModelNotFound: a file is missing or is not a model.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        name: str,
        *,
        max_tokens: int = 256,
        num_threads: int | None = None,
    ) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        for file in (model, tokenizer):
            if not file.is_file():
                raise ModelNotFound(
                    f"the embedding model {name!r} is not there: no file {file}; "
                    "fetch it with: gistree models fetch"
                )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the cores work on different texts
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            graph = model.read_bytes()
            in_int8 = with_int8_products(graph) if multiplies_int8() else graph
            self._session: Any = onnxruntime.InferenceSession(
                in_int8, options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        except Exception as failure:  # both libraries raise bare Exceptions on damaged files
            raise ModelNotFound(
                f"the embedding model {name!r} cannot be loaded from {model} and {tokenizer}: "
                f"{failure}; fetch it again with: gistree models fetch"
            ) from failure
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)  # the rest follows as ``overflowing``
        # In int8 the texts of a call share a scale: only one by one are vectors always the same.
        self._batch_tokens = BATCH_TOKENS if in_int8 is graph else 1
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._pool = ThreadPoolExecutor(num_threads or usable_cores(), "gistree-embed")
        self.name = name
        self.dim = int(self._session.get_outputs()[0].shape[-1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, float32 [len(texts), dim]."""
        windows: list[list[int]] = []
        owners: list[int] = []
        for owner, encoding in enumerate(self._encode(texts, special=True)):
            for window in (encoding, *encoding.overflowing):
                windows.append(window.ids)
                owners.append(owner)
        sums = np.zeros((len(texts), self.dim), np.float32)
        batches = list(_batches([len(ids) for ids in windows], self._batch_tokens))
        run = map if len(batches) == 1 else self._pool.map
        for batch, states in zip(
            batches,
            run(lambda batch: self._states([windows[place] for place in batch]), batches),
            strict=True,
        ):
            np.add.at(sums, [owners[place] for place in batch], states)
        # The sum over tokens and their mean differ by a factor that the norm takes out.
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return cast(Vectors, sums / np.maximum(norms, 1e-12))

    def embed_query(self, query: str) -> Vectors:
        """Unit vector of a query, float32 [dim]."""
        return cast(Vectors, self.embed([query])[0])

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's tokenizer, special tokens not counted."""
        return [
            len(encoding.ids) + sum(len(window.ids) for window in encoding.overflowing)
            for encoding in self._encode(texts, special=False)
        ]

    def _encode(self, texts: Sequence[str], *, special: bool) -> list[Any]:
        # Lone surrogates cannot pass into the tokenizer's UTF-8.
        clean = [t if t.isascii() else t.encode("utf-8", "replace").decode() for t in texts]
        return cast(list[Any], self._tokenizer.encode_batch_fast(clean, add_special_tokens=special))

    def _states(self, windows: list[list[int]]) -> Vectors:
        """Sum of the token states of each window, float32 [len(windows), dim]."""
        ids: NDArray[np.int64] = np.zeros((len(windows), max(map(len, windows))), np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})[0]
        return cast(Vectors, np.einsum("btd,bt->bd", states, mask.astype(np.float32)))


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions in batches of like lengths, so that little padding is computed; longest first."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    while order:
        size = max(1, batch_tokens // lengths[order[0]])
        yield order[:size]
        order = order[size:]
