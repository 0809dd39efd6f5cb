"""Generates with vLLM in a process of its own and prints JSON. Usage: engine.py MODEL TOKENS…

vLLM reads the environment once, when it is imported: so each setting of attention is a process.
"""

import json
import os
import sys
from pathlib import Path

os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_LOGGING_LEVEL="ERROR",
    HF_HUB_OFFLINE="1",
)

from vllm import LLM, SamplingParams

model, *lengths = sys.argv[1:]
llm = LLM(
    model=model,
    dtype="float32",
    max_model_len=4096,
    enforce_eager=True,
    enable_prefix_caching=True,
    max_num_batched_tokens=1024,
    block_size=32,
)
text = (Path(__file__).parents[2] / "app/samples/persuasion.txt").read_text(encoding="utf-8")[
    :20_000
]
ids = llm.get_tokenizer()(text)["input_ids"]
prompts = [{"prompt_token_ids": ids[:length]} for length in map(int, lengths)]
sampling = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)
rounds = []
for _ in range(2):  # the second time the prefix cache has them
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    rounds.append([list(output.outputs[0].token_ids) for output in outputs])
cached = [output.num_cached_tokens for output in outputs]


def counts(worker):
    """Tokens that the sparse layers have read, and would have read."""
    layers = worker.get_model().modules()
    impls = [getattr(module, "impl", None) for module in layers]
    sparse = [each.sparse for each in impls if hasattr(each, "sparse")]
    return sum(s.tokens_read for s in sparse), sum(s.tokens_there for s in sparse), len(sparse)


read = llm.collective_rpc(counts)[0]
sys.stdout.write("\n" + json.dumps({"rounds": rounds, "cached": cached, "read": read}) + "\n")
