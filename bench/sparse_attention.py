"""Decode and prefill with sparse attention, beside stock vLLM of the same version.

    python bench/sparse_attention.py FOLDER [--tokens 4096,8192,16384] [--batch 1,4]

FOLDER is a model that vLLM loads; ``bench/gguf_to_hf.py MODEL FOLDER --layers 6 --positions 40960``
writes a small one of random weights, which is what lengths past a model's window need: speed does
not ask for sense. Each setting is a process of its own, dense before and after the others, so that
a busy machine shows. Reported: seconds to prefill one prompt, seconds a decode step at each batch
size (all prompts share a prefix, which the prefix cache holds), times as fast as dense, and the
share of the tokens that heads have read: the bound that attention's part cannot beat.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = (
    "",
    "quest:budget=1024",
    "twilight:top_p=0.95,budget=2048",
    "streaming:budget=1024",
    "hip:budget=1024",
    "critiprefill:budget=1024",
    "sample:share=0.95,budget=2048",
    "",
)
STEPS = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", default="4096,8192,16384")
    parser.add_argument("--batch", default="1,4")
    parser.add_argument("--settings", default="", help="separated by |; default: one a selector")
    parser.add_argument("--dense-layers", type=int, default=0)
    parser.add_argument("--one", action="store_true", help="measure here, print JSON")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    lengths = [int(each) for each in options.tokens.split(",")]
    sizes = [int(each) for each in options.batch.split(",")]
    if options.one:
        sys.stdout.write("\n" + json.dumps(measure(options.folder, lengths, sizes)) + "\n")
        return
    settings = options.settings.split("|") if options.settings else SETTINGS
    rows = []
    for setting in settings:
        spec = f"{setting};dense_layers={options.dense_layers}" if setting else ""
        process = subprocess.run(
            [
                *(sys.executable, __file__, str(options.folder), "--one"),
                *("--tokens", options.tokens, "--batch", options.batch),
            ],
            env={**os.environ, "GISTREE_ATTENTION": spec},
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            raise SystemExit(f"{setting}: {process.stderr[-2000:]}")
        measured = json.loads(process.stdout.strip().splitlines()[-1])
        rows += [{"setting": setting or "dense", **row} for row in measured]
        print(setting or "dense", measured, flush=True)
    command = f"python bench/sparse_attention.py FOLDER --tokens {options.tokens}"
    command += f" --batch {options.batch} --dense-layers {options.dense_layers}"
    file = options.out / f"sparse-attention-{date.today()}"
    kept = {"command": command, "model": options.folder.name, "rows": rows}
    file.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(command, rows), encoding="utf-8")


def measure(folder: Path, lengths: list[int], sizes: list[int]) -> list[dict]:
    """Seconds of one setting, in this process."""
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="4",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_LOGGING_LEVEL="ERROR",
        HF_HUB_OFFLINE="1",
    )
    import random

    from vllm import LLM, SamplingParams

    random.seed(0)
    llm = LLM(
        model=str(folder),
        load_format="auto" if list(folder.glob("*.safetensors")) else "dummy",
        dtype="float32",
        max_model_len=max(lengths) + 64,
        enforce_eager=True,
        enable_prefix_caching=True,
        max_num_batched_tokens=2048,
        block_size=32,
        seed=0,
    )

    def run(prompts: list[list[int]], steps: int) -> float:
        sampling = SamplingParams(temperature=0, max_tokens=steps, ignore_eos=True)
        begun = time.perf_counter()
        given = [{"prompt_token_ids": prompt} for prompt in prompts]
        llm.generate(given, sampling, use_tqdm=False)
        return time.perf_counter() - begun

    run([[random.randrange(100, 40_000) for _ in range(64)]], 2)  # the first call is slow
    rows = []
    for length in lengths:
        prompt = [random.randrange(100, 40_000) for _ in range(length - 1)]
        before = counted(llm)
        prefill = run([prompt], 1)
        after = counted(llm)
        row = {
            "tokens": length,
            "prefill_s": round(prefill, 3),
            "prefill_read": share(before, after),
        }
        for size in sizes:
            prompts = [
                [*prompt[:-32], *(random.randrange(100, 40_000) for _ in range(31))]
                for _ in range(size)
            ]
            run(prompts, 2)  # into the prefix cache
            short = run(prompts, 2)
            before = counted(llm)
            long = run(prompts, 2 + STEPS)
            row[f"decode_s_batch_{size}"] = round((long - short) / STEPS, 4)
            row[f"decode_read_batch_{size}"] = share(before, counted(llm))
        rows.append(row)
    return rows


def counted(llm: object) -> tuple[int, int]:
    return llm.collective_rpc(_counts)[0]  # type: ignore[attr-defined]


def _counts(worker: object) -> tuple[int, int]:
    layers = worker.get_model().modules()  # type: ignore[attr-defined]
    found = [getattr(module, "impl", None) for module in layers]
    sparse = [each for each in found if hasattr(each, "tokens_read")]
    return sum(each.tokens_read for each in sparse), sum(each.tokens_there for each in sparse)


def share(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    there = after[1] - before[1]
    return round((after[0] - before[0]) / there, 3) if there else None


def table(command: str, rows: list[dict]) -> str:
    """Times as fast as the mean of the two dense runs."""
    lines = [f"# Sparse attention, {date.today()}", "", f"`{command}`", ""]
    columns = [name for name in rows[0] if name not in ("setting", "tokens")]
    for tokens in dict.fromkeys(row["tokens"] for row in rows):
        lines += [f"## {tokens:,} tokens", "", "| setting | " + " | ".join(columns) + " |"]
        lines.append("|" + "---|" * (len(columns) + 1))
        mine = [row for row in rows if row["tokens"] == tokens]
        dense = [row for row in mine if row["setting"] == "dense"]
        for row in mine:
            cells = []
            for name in columns:
                value = row[name]
                if value is not None and "_s" in name and "read" not in name:
                    base = sum(each[name] for each in dense) / len(dense)
                    value = f"{value} ({base / value:.2f}×)"
                cells.append("" if value is None else str(value))
            lines.append(f"| {row['setting']} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append("Seconds, with times as fast as dense; read: share of the tokens that heads read.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
