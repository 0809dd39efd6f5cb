"""vLLM's door to sparse attention: what its entry point calls in every process.

    GISTREE_ATTENTION="quest:budget=1024;critiprefill:budget=1024" vllm serve …

One selector for decoding, one for prefill, or both; where none is named attention is dense. The
environment is read here because vLLM's worker processes are given nothing else.
"""

import logging
import os
from dataclasses import dataclass
from typing import Any

from serving.errors import BadOption
from serving.plugins import make

VARIABLE = "GISTREE_ATTENTION"
TESTED = ("0.32",)
"""Releases of vLLM whose internals ``serving/sparse_backend.py`` was tested with."""

log = logging.getLogger(__name__)

_PAYS = 2
_WIDEST = 128  # tokens of the largest KV block that is usual


@dataclass(frozen=True, slots=True)
class Attention:
    """Which selectors attention uses.

    Attributes:
        decode: For new tokens, or None: dense.
        prefill: For prompts, or None.
        dense_layers: The first layers, which read everything: their attention is spread out.
        from_tokens: Shorter sequences are read whole; below 0 takes twice the selector's
            budget, where selecting begins to pay.
        gpu: 1 takes the backend for GPUs, which nobody has run yet.
    """

    decode: Any = None
    prefill: Any = None
    dense_layers: int = 2
    from_tokens: int = -1
    gpu: int = 0

    def least(self, budget: int) -> int:
        """Tokens from which on a sequence is selected from."""
        return _PAYS * budget if self.from_tokens < 0 else self.from_tokens


def parse(spec: str) -> Attention:
    """Selectors from their names and options, separated by semicolons.

    Args:
        spec: For example "quest:budget=1024;critiprefill:segment=512;dense_layers=0".

    Raises:
        UnknownName: no such selector, or no such option.
        BadOption: a value does not fit, or there are two selectors for one phase.
    """
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in spec.split(";"))):
        name, _, value = part.partition("=")
        if name in ("dense_layers", "from_tokens", "gpu"):
            if not value.isdigit():
                raise BadOption(f"{name} cannot be {value!r}: a whole number is needed")
            found[name] = int(value)
            continue
        selector = make("serving.selectors", part)
        if selector.budget < 1:
            raise BadOption(f"{part}: the budget must be at least 1 token")
        if selector.phase in found:
            raise BadOption(f"{spec}: two selectors for {selector.phase}; name one")
        found[selector.phase] = selector
    return Attention(**found)


def check_options(attention: Attention) -> None:
    """Says at the start what would fail at the first long prompt.

    Raises:
        BadOption: a count is below 1, or a budget has no room for a block beside what is read
            always.
    """
    for selector in filter(None, (attention.decode, attention.prefill)):
        for name in ("segment", "samples", "reuse", "beam", "part"):
            if getattr(selector, name, 1) < 1:
                raise BadOption(f"{name} cannot be {getattr(selector, name)}: at least 1 is needed")
        always = max(getattr(selector, "newest", 0), getattr(selector, "first", 0))
        if selector.budget < always + _WIDEST:
            raise BadOption(
                f"a budget of {selector.budget} tokens is too small for "
                f"{type(selector).__name__.lower()}, which always reads {always}; "
                f"at least {always + _WIDEST} are needed"
            )


def wanted() -> Attention:
    """What the environment asks for."""
    return parse(os.environ.get(VARIABLE, ""))


def register() -> None:
    """Puts sparse attention in place of the platform's own, where it is asked for.

    A version of vLLM that nobody tested, or a platform without a backend of ours, stays dense and
    says so.

    Raises:
        UnknownName: ``GISTREE_ATTENTION`` names no selector.
        BadOption: an option of it does not fit.
    """
    spec = os.environ.get(VARIABLE, "")
    if not spec:
        return
    asked = parse(spec)
    check_options(asked)  # a mistake is said before a model is loaded
    import vllm
    from vllm.platforms import current_platform
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    if not vllm.__version__.startswith(TESTED):
        log.warning(
            "attention is dense: %s was tested with vLLM %s, and this is %s",
            VARIABLE,
            ", ".join(TESTED),
            vllm.__version__,
        )
        return
    if current_platform.is_cpu():
        register_backend(AttentionBackendEnum.CPU_ATTN, "serving.sparse_backend.SparseBackend")
        for latent in (AttentionBackendEnum.CPU_MLA, AttentionBackendEnum.AMX_MLA):
            register_backend(latent, f"serving.sparse_uncovered.{latent.name}")
    elif current_platform.is_cuda() and asked.gpu:
        log.warning(
            "%s: the backend for GPUs has not been run on one before; compare. Where vLLM says that"
            " it takes another backend than FLASH_ATTN (MLA, FlashInfer, …), attention is dense",
            VARIABLE,
        )
        register_backend(AttentionBackendEnum.FLASH_ATTN, "serving.sparse_flash.SparseFlashBackend")
    else:
        log.warning(
            "attention is dense: %s was tested on the CPU only; on an NVIDIA GPU gpu=1 tries it",
            VARIABLE,
        )
        return
    log.info("attention: %s", spec)
