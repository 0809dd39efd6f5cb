"""What keys and values of eight bits save of memory, and what they cost in quality.

    python bench/kv_memory.py FOLDER [--tokens 4096] [--needles 3] [--meetings 2]

FOLDER is a model that vLLM loads; its CPU build needs AVX-512 for eight bits. For each type of the
cache: bytes that a token takes, tokens for which a GiB has room, and what ``sparse_quality.py``
measures, with dense attention. Each is a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

from sparse_quality import ROOT, Model, scores

ARMS = (
    ("float32", "auto"),
    ("bfloat16", "auto"),
    ("bfloat16", "fp8_e4m3"),
    ("bfloat16", "fp8_e5m2"),
)
_GIB = 1 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=4_096, help="of a document")
    parser.add_argument("--needles", type=int, default=3, help="documents with needles")
    parser.add_argument("--meetings", type=int, default=2, help="documents of qmsum")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    if options.only:
        sys.stdout.write("\n" + json.dumps(measured(options, *options.only.split(","))) + "\n")
        return
    rows = []
    for arm in ARMS:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--only", ",".join(arm)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(rows[-1], flush=True)
    command = f"python bench/kv_memory.py FOLDER --tokens {options.tokens}"
    command += f" --needles {options.needles} --meetings {options.meetings}"
    kept = {"command": command, "model": options.folder.name, "rows": rows}
    file = options.out / f"kv-memory-{date.today()}.json"
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def measured(options: argparse.Namespace, dtype: str, kv_dtype: str) -> dict:
    """One type of the cache."""
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="1",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="ERROR",
        HF_HUB_OFFLINE="1",
    )
    model = Model(options.folder, options.tokens, dtype=dtype, kv_cache_dtype=kv_dtype)
    cache = model.llm.llm_engine.vllm_config.cache_config
    room = cache.num_gpu_blocks * cache.block_size
    asked = [
        *model.cut("needles", options.needles, options.tokens),
        *model.cut("qmsum_val", options.meetings, options.tokens),
    ]
    told = [each for together in asked for each in model.told(together)]
    return {
        "weights": dtype,
        "keys_and_values": kv_dtype,
        "bytes_a_token": round(_GIB / room),
        "tokens_a_gib": room,
        **scores(told),
    }


if __name__ == "__main__":
    main()
