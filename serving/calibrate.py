"""Measures which pattern each head's attention follows, and writes the file ``minference`` reads.

    python -m serving.calibrate MODEL DOCUMENT… --out heads.json [--budget 1024] [--tokens 4096]

MODEL is a folder or name that vLLM loads, the documents are text files longer than the budget.
Runs where vLLM is installed. Queries and keys are measured where attention gets them, behind the
position encoding, in one pass a document; nothing of them is kept.
"""

import argparse
import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from serving.errors import BadOption
from serving.head_patterns import HeadPattern, HeadPatterns, save_patterns
from serving.pattern_recall import best_patterns, measure
from serving.selection import layer_number
from serving.selectors.minference import MInference

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 2 after a mistake in what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m serving.calibrate")
    parser.add_argument("model", help="a folder or a name that vLLM loads")
    parser.add_argument("documents", nargs="+", type=Path, help="text files")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--budget", type=int, default=1_024, help="tokens that a head may read")
    parser.add_argument("--tokens", type=int, default=4_096, help="tokens taken of each document")
    parser.add_argument(
        "--at-least", type=float, default=0.9, help="a head of which less can be read stays dense"
    )
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.INFO)
    options = MInference(budget=asked.budget)
    try:
        texts = [path.read_text(encoding="utf-8") for path in asked.documents]
        measured = measured_layers(asked.model, texts, asked.tokens, options)
    except (OSError, UnicodeDecodeError, BadOption) as error:
        parser.error(str(error))
    layers = []
    for number in range(max(measured) + 1):
        patterns = best_patterns(measured[number], at_least=asked.at_least)
        layers.append(patterns)
        log.info("layer %d: %s", number, ", ".join(map(_said, patterns)))
    save_patterns(HeadPatterns(Path(asked.model).name, asked.budget, tuple(layers)), asked.out)
    log.info("use it with minference:budget=%d,heads=%s", asked.budget, asked.out)
    return 0


def measured_layers(
    model: str, texts: Sequence[str], tokens: int, options: MInference
) -> dict[int, list[Tensor]]:
    """Of each layer, of each document, what the patterns read.

    Args:
        model: As vLLM names it.
        texts: The documents.
        tokens: Most tokens of each that are taken.
        options: Budget, segment and so on.

    Raises:
        BadOption: a document is no longer than the budget, or vLLM is not installed.
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the layers must be in this process
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        from vllm import LLM, SamplingParams
    except ImportError as error:
        raise BadOption(f"{model} cannot be measured without vLLM: {error}") from error
    llm = LLM(
        model=model,
        max_model_len=tokens + 1,
        max_num_batched_tokens=tokens + 1,  # a whole document in one step
        enforce_eager=True,
        enable_prefix_caching=False,
    )
    tokenizer = llm.get_tokenizer()
    prompts = [tokenizer(text, truncation=True, max_length=tokens)["input_ids"] for text in texts]
    for number, prompt in enumerate(prompts):
        if len(prompt) <= options.budget + options.segment:
            raise BadOption(
                f"document {number + 1} has {len(prompt)} tokens; more than the budget of "
                f"{options.budget} and a segment of {options.segment} are needed"
            )
    found: dict[int, list[Tensor]] = defaultdict(list)

    def watch(worker: Any) -> None:
        from vllm.model_executor.layers.attention import Attention

        for module in worker.get_model().modules():
            if isinstance(module, Attention):
                module.register_forward_pre_hook(_measuring(options, found))

    llm.collective_rpc(watch)
    for prompt in prompts:
        llm.generate({"prompt_token_ids": prompt}, SamplingParams(max_tokens=1), use_tqdm=False)
    return found


def _measuring(options: MInference, found: dict[int, list[Tensor]]) -> Any:
    """A hook that measures a layer's queries and keys as they come."""

    def hook(layer: Any, given: tuple[Tensor, ...]) -> None:
        heads, dim = layer.num_kv_heads, layer.head_size
        q = given[0].view(len(given[0]), heads, -1, dim).float() * layer.impl.scale
        keys = given[1].view(-1, heads, dim).float()
        found[layer_number(layer.layer_name)].append(measure(options, q, keys))

    return hook


def _said(pattern: HeadPattern) -> str:
    """One head's pattern for people."""
    return f"{pattern.pattern} {pattern.share:.0%}"


if __name__ == "__main__":
    raise SystemExit(main())
