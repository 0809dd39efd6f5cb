"""Decode and prefill with sparse attention, beside stock vLLM of the same version.

    python bench/sparse_attention.py FOLDER [--tokens 4096,8192] [--batch 1,4] [--threads 1]
        [--phase decode] [--settings "quest:budget=1024|hip:budget=1024"]

FOLDER is a model that vLLM loads; ``bench/gguf_to_hf.py MODEL FOLDER --layers 6 --positions 40960``
writes a small one of random weights, which is what lengths past a model's window need: speed does
not ask for sense. Stock vLLM runs in a process of its own before and after the plug-in's, so that a
busy machine shows. Reported: seconds to prefill one prompt, and a decode step at each batch size
(all prompts share a prefix, which the prefix cache holds; the best of three). Beside each: CPU
seconds, which with one thread are what an idle machine would take, what attention took of them and
its share; the share of the tokens that heads have read; how many times as fast as stock that is, in
CPU seconds (``times``) and by the clock (``times_wall``); and the bound: if attention took that
share of stock's, and the rest what it takes. With two threads the clock is what counts, on an idle
machine: a thread that waits for another spends CPU seconds too.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFILL = (
    "critiprefill:budget=1024",
    "minference:budget=1024",
    "sample:share=0.95,budget=2048",
)
DECODE = (
    "quest:budget=1024",
    "twilight:top_p=0.95,budget=2048",
    "streaming:budget=1024",
    "hip:budget=1024",
)
STEPS = 24
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", default="4096,8192")
    parser.add_argument("--batch", default="1,4")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dense-layers", type=int, default=0)
    parser.add_argument("--phase", choices=("prefill", "decode"), help="one of them; default: both")
    parser.add_argument("--settings", default="", help="separated by |; default: one a selector")
    parser.add_argument("--once", action="store_true", help="stock vLLM before only")
    parser.add_argument("--one", choices=("stock", "plug-in"), help="measure here, print JSON")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    lengths = [int(each) for each in options.tokens.split(",")]
    sizes = [int(each) for each in options.batch.split(",")]
    if options.one:
        measuring = Measuring(options.folder, max(lengths))
        settings = wanted(options, options.one == "plug-in")
        rows = measuring.all(lengths, sizes, settings, options.dense_layers)
        sys.stdout.write("\n" + json.dumps(rows) + "\n")
        return
    rows = []
    for kind in ("stock", "plug-in") if options.once else ("stock", "plug-in", "stock"):
        process = subprocess.run(
            [
                *(sys.executable, __file__, str(options.folder), "--one", kind),
                *("--tokens", options.tokens, "--batch", options.batch),
                *("--dense-layers", str(options.dense_layers), "--settings", options.settings),
                *(("--phase", options.phase) if options.phase else ()),
            ],
            env={
                **os.environ,
                "GISTREE_ATTENTION": "" if kind == "stock" else "quest",
                "OMP_NUM_THREADS": str(options.threads),
            },
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows += json.loads(process.stdout.strip().splitlines()[-1])
    bounded(rows)
    command = f"python bench/sparse_attention.py FOLDER --tokens {options.tokens}"
    command += f" --batch {options.batch} --threads {options.threads}"
    command += f" --dense-layers {options.dense_layers}" + " --once" * options.once
    command += f" --phase {options.phase}" if options.phase else ""
    command += f' --settings "{options.settings}"' if options.settings else ""
    name = f"sparse-attention-{date.today()}-{'-'.join(map(str, lengths))}"
    name += f"-{options.phase}" if options.phase else ""
    kept = {"command": command, "model": options.folder.name, "rows": rows}
    file = options.out / f"{name}.json"
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(command, rows), encoding="utf-8")


def wanted(options: argparse.Namespace, ours: bool) -> dict[str, list[str]]:
    """Settings of each phase that is measured; stock vLLM has one."""
    phases = [options.phase] if options.phase else ["prefill", "decode"]
    if not ours:
        return {phase: ["stock"] for phase in phases}
    if not options.settings:
        return {phase: list({"prefill": PREFILL, "decode": DECODE}[phase]) for phase in phases}
    from serving.sparse_plugin import parse

    found: dict[str, list[str]] = {phase: [] for phase in phases}
    for setting in options.settings.split("|"):
        phase = "prefill" if parse(setting).prefill else "decode"
        found.get(phase, []).append(setting)
    return found


class Measuring:
    """vLLM with a model, and what its attention has taken and read."""

    def __init__(self, folder: Path, longest: int) -> None:
        os.environ.update(
            VLLM_CPU_KVCACHE_SPACE="4",
            VLLM_CPU_OMP_THREADS_BIND="nobind",
            VLLM_ENABLE_V1_MULTIPROCESSING="0",
            VLLM_LOGGING_LEVEL="ERROR",
            HF_HUB_OFFLINE="1",
        )
        from vllm import LLM

        random.seed(0)
        self.llm = LLM(
            model=str(folder),
            load_format="auto" if list(folder.glob("*.safetensors")) else "dummy",
            dtype="float32",
            max_model_len=longest + 64,
            enforce_eager=True,
            enable_prefix_caching=True,
            max_num_batched_tokens=2048,
            block_size=32,
            seed=0,
        )
        self.attention_s, self.timing = 0.0, False
        self.llm.collective_rpc(lambda worker: [self._time(each) for each in _impls(worker)])
        self._run([_drawn(64)], 2)  # the first call is slow

    def all(
        self, lengths: list[int], sizes: list[int], settings: dict, dense_layers: int
    ) -> list[dict]:
        """Rows of all settings, at each length first those for prompts."""
        rows = []

        def add(setting: str, tokens: int, what: str, measured: dict) -> None:
            rows.append({"setting": setting, "tokens": tokens, "what": what, **measured})
            print(rows[-1], file=sys.stderr, flush=True)

        for length in lengths:
            prompt = _drawn(length - 1)
            for setting in settings.get("prefill", ()):
                self._use(setting, dense_layers)
                self.llm.reset_prefix_cache()
                self.timing = True
                measured = self._measured(lambda prompt=prompt: self._run([prompt], 1))
                self.timing = False
                add(setting, length, "prefill", measured)
            for size in sizes if settings.get("decode") else ():
                prompts = [[*prompt[:-32], *_drawn(31)] for _ in range(size)]
                if settings["decode"] != ["stock"]:
                    self._use(PREFILL[0], dense_layers)  # the faster way there
                self._run(prompts, 2)  # into the prefix cache
                for setting in settings["decode"]:
                    self._use(setting, dense_layers)
                    add(setting, length, f"decode, batch {size}", self._decode(prompts))
        return rows

    def _decode(self, prompts: list[list[int]]) -> dict:
        """A step: what many steps take over two, without what they share; the best round.

        What attention takes of it comes from a round of its own, as looking at the clock in each
        layer of each step would be a good part of what is measured.
        """
        rounds = [self._steps(prompts) for _ in range(ROUNDS)]
        self.timing = True
        attention = self._steps(prompts)["attention_s"]
        self.timing = False
        return min(rounds, key=lambda each: each["cpu_s"]) | {"attention_s": attention}

    def _steps(self, prompts: list[list[int]]) -> dict:
        short = self._measured(lambda: self._run(prompts, 2))
        long = self._measured(lambda: self._run(prompts, 2 + STEPS))
        names = ("wall_s", "cpu_s", "attention_s")
        step = {name: round((long[name] - short[name]) / STEPS, 5) for name in names}
        return {**step, "read": long["read"]}

    def _measured(self, what) -> dict:
        before, self.attention_s = self._counted(), 0.0
        cpu, wall = time.process_time(), time.perf_counter()
        what()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = self._counted()
        there = after[1] - before[1]
        return {
            "wall_s": round(wall, 4),
            "cpu_s": round(cpu, 4),
            "attention_s": round(self.attention_s, 4),
            "read": round((after[0] - before[0]) / there, 3) if there else None,
        }

    def _run(self, prompts: list[list[int]], steps: int) -> None:
        from vllm import SamplingParams

        sampling = SamplingParams(temperature=0, max_tokens=steps, ignore_eos=True)
        given = [{"prompt_token_ids": prompt} for prompt in prompts]
        self.llm.generate(given, sampling, use_tqdm=False)

    def _use(self, setting: str, dense_layers: int) -> None:
        from serving.sparse_plugin import parse

        spec = f"{'' if setting == 'stock' else setting};dense_layers={dense_layers}"
        self.llm.collective_rpc(lambda worker: [e.use(parse(spec)) for e in _sparse(worker)])

    def _counted(self) -> tuple[int, int]:
        def counts(worker) -> tuple[int, int]:
            sparse = _sparse(worker)
            return sum(s.tokens_read for s in sparse), sum(s.tokens_there for s in sparse)

        return self.llm.collective_rpc(counts)[0]

    def _time(self, impl) -> None:
        """Adds up what a layer's attention takes, selection and all."""
        for name in ("forward", "do_kv_cache_update"):
            impl.__dict__[name] = self._timed(getattr(impl, name))

    def _timed(self, call):
        def timed(*args, **options):
            if not self.timing:
                return call(*args, **options)
            begun = time.process_time()
            result = call(*args, **options)
            self.attention_s += time.process_time() - begun
            return result

        return timed


def _drawn(tokens: int) -> list[int]:
    return [random.randrange(100, 40_000) for _ in range(tokens)]


def _impls(worker) -> list:
    layers = worker.get_model().modules()
    found = [getattr(module, "impl", None) for module in layers]
    return [each for each in found if hasattr(each, "do_kv_cache_update")]


def _sparse(worker) -> list:
    return [each.sparse for each in _impls(worker) if hasattr(each, "sparse")]


def bounded(rows: list[dict]) -> None:
    """Adds to each row of the plug-in how much faster than stock it is, and could be."""
    for row in rows:
        stock = [
            each
            for each in rows
            if (each["setting"], each["tokens"], each["what"])
            == ("stock", row["tokens"], row["what"])
        ]
        took = sum(each["cpu_s"] for each in stock) / len(stock)
        wall = sum(each["wall_s"] for each in stock) / len(stock)
        attention = sum(each["attention_s"] for each in stock) / len(stock)
        row["attention_share"] = round(row["attention_s"] / row["cpu_s"], 2)
        row["times"] = round(took / row["cpu_s"], 2)
        row["times_wall"] = round(wall / row["wall_s"], 2)
        if row["setting"] != "stock":
            read = 1 if row["read"] is None else row["read"]
            row["bound"] = round(took / (took - attention + attention * read), 2)


def table(command: str, rows: list[dict]) -> str:
    """The rows, one table a length and phase."""
    lines = [f"# Sparse attention, {date.today()}", "", f"`{command}`", ""]
    columns = ("wall_s", "cpu_s", "attention_s", "attention_share", "read")
    columns += ("times", "times_wall", "bound")
    for tokens, what in dict.fromkeys((row["tokens"], row["what"]) for row in rows):
        lines += [f"## {tokens:,} tokens: {what}", "", "| setting | " + " | ".join(columns) + " |"]
        lines.append("|" + "---|" * (len(columns) + 1))
        for row in rows:
            if (row["tokens"], row["what"]) == (tokens, what):
                cells = ["" if row.get(name) is None else str(row[name]) for name in columns]
                lines.append(f"| {row['setting']} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append("Seconds of a prompt or of a decode step; read: share of the tokens that heads")
    lines.append(
        "read; times as fast as stock vLLM in CPU seconds and by the clock; the bound of that."
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
