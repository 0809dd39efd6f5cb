"""Pruning by a Provence or OpenProvence checkpoint, through the extra ``provence``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

from memory.document import Span
from memory.sentences import sentences
from retrieval.types import Embedder
from serving.errors import MissingExtra, ModelNotFound

__all__ = ["ProvencePruner"]

_OUTPUTS = ("compression_logits", "pruning_logits")  # Provence and XProvence; OpenProvence


@dataclass(frozen=True, slots=True)
class ProvencePruner:
    """Keeps the sentences that a trained model finds to help (Provence, arXiv:2501.16214).

    The model reads the question and a passage behind its header, and says of every token how
    likely it is of use; a sentence stays where the mean over its tokens passes ``threshold``.

    Attributes:
        model: Name on the hub or folder, such as "hotchpotch/open-provence-reranker-xsmall-v1"
            (MIT) or "naver/provence-reranker-debertav3-v1" (CC BY-NC-ND: not for commerce).
        threshold: 0.1 keeps whatever may matter, 0.5 cuts deep (their authors' figures).
        trust_remote_code: These checkpoints bring their own Python code. It runs only if you say
            so; read it first.
        revision: Commit, tag or branch on the hub; name a commit so that the code stays the same.
        device: "cpu", "cuda" or another torch device; empty takes a GPU where there is one.
        max_tokens: The model's window.
        batch_size: Windows read at once.
    """

    model: str = "hotchpotch/open-provence-reranker-xsmall-v1"
    threshold: float = 0.1
    trust_remote_code: bool = False
    revision: str = ""
    device: str = ""
    max_tokens: int = 512
    batch_size: int = 16

    def prune(
        self, question: str, passages: Sequence[str], *, headers: Sequence[str], embedder: Embedder
    ) -> list[list[Span]]:
        """What to keep of each passage; see ``retrieval.types.Pruner``. Ignores the embedder.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ModelNotFound: no such checkpoint, one without pruning, or one with code of its own
                that it was not allowed to run.
        """
        tokenizer, model = _load(self.model, self.revision, self.trust_remote_code, self.device)
        kept: list[list[Span]] = [[] for _ in passages]
        windows = [
            (number, head, window)
            for number, (passage, head) in enumerate(zip(passages, headers, strict=True))
            for head in [f"{head}\n" if head else ""]
            for window in self._windows(tokenizer, question, head, passage)
        ]
        for at in range(0, len(windows), self.batch_size):
            batch = windows[at : at + self.batch_size]
            texts = [head + _hull(w).of(passages[number]) for number, head, w in batch]
            chances = self._chances(tokenizer, model, question, texts)
            for (number, head, window), (offsets, chance) in zip(batch, chances, strict=True):
                shift = _hull(window).start - len(head)
                for sentence in window:
                    mine = [
                        float(c)
                        for (start, end), c in zip(offsets, chance, strict=True)
                        if start < end and sentence.start - shift < end <= sentence.end - shift
                    ]
                    if mine and sum(mine) / len(mine) > self.threshold:
                        kept[number].append(sentence)
        return kept

    def _windows(
        self, tokenizer: Any, question: str, head: str, passage: str
    ) -> Iterator[list[Span]]:
        """Runs of sentences that the model reads at once, as long as fit its window."""
        given = len(tokenizer(question, head)["input_ids"])
        window: list[Span] = []
        tokens = given
        for sentence in sentences(passage):
            size = len(tokenizer(sentence.of(passage), add_special_tokens=False)["input_ids"])
            if window and tokens + size > self.max_tokens:
                yield window
                window, tokens = [], given
            window.append(sentence)
            tokens += size
        if window:
            yield window

    def _chances(
        self, tokenizer: Any, model: Any, question: str, texts: Sequence[str]
    ) -> list[tuple[list[tuple[int, int]], list[float]]]:
        """For each text: places of its tokens in it, and how likely each is of use."""
        import torch

        encoded = tokenizer(
            [question] * len(texts),
            list(texts),
            padding=True,
            truncation="only_second",  # of a sentence longer than the window its beginning counts
            max_length=self.max_tokens,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        taken = signature(model.forward).parameters
        names = [n for n in ("input_ids", "attention_mask", "token_type_ids") if n in encoded]
        given = {n: encoded[n].to(model.device) for n in names if n in taken or "kwargs" in taken}
        with torch.inference_mode():
            output = model(**given)
        logits = next((getattr(output, n) for n in _OUTPUTS if hasattr(output, n)), None)
        if logits is None:
            raise ModelNotFound(
                f"the checkpoint {self.model!r} does not prune; it gives {', '.join(output)}"
            )
        of_use = logits.float().softmax(-1)[..., -1]
        found = []
        for row in range(len(texts)):
            mine = [i for i, part in enumerate(encoded.sequence_ids(row)) if part == 1]
            places = [tuple(encoded["offset_mapping"][row, i].tolist()) for i in mine]
            found.append((places, of_use[row, mine].tolist()))
        return found


def _hull(window: Sequence[Span]) -> Span:
    return Span(window[0].start, window[-1].end)


@cache
def _load(name: str, revision: str, trusted: bool, device: str) -> tuple[Any, Any]:
    """Tokenizer and model, ready to read."""
    try:
        import torch
        from transformers import AutoConfig, AutoModel, AutoTokenizer
    except ImportError as absent:
        raise MissingExtra("the pruner 'provence'", "provence") from absent
    where = {"revision": revision} if revision else {}
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trusted, **where)
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=trusted, **where)
        model = AutoModel.from_pretrained(name, config=config, trust_remote_code=trusted, **where)
    except ValueError as refused:
        if trusted or "trust_remote_code" not in str(refused):
            raise ModelNotFound(f"the checkpoint {name!r} cannot be loaded: {refused}") from refused
        raise ModelNotFound(
            f"the checkpoint {name!r} brings its own Python code, which is not run unasked; "
            "read it, then set trust_remote_code=True and a revision"
        ) from refused
    except OSError as absent:
        raise ModelNotFound(
            f"there is no checkpoint {name!r} on this machine or the hub: {absent}"
        ) from absent
    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return tokenizer, model.to(target).eval()
