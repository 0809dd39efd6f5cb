"""What prefix caching and the order of a batch spare, with vLLM in this process.

    python bench/prefix_cache.py MODEL [--tokens 400] [--one 20] [--many 200] [--documents 10]

MODEL is a folder that vLLM loads. Two loads: questions about one document, one after the other, and
questions about several documents, four at a time, as they come (each about another document than
the one before) and as a batch plans them (grouped by document). Each runs with the prefix cache off
and on. The cache has room for the requests that run at a time, should they share nothing, so that
it holds less than half of the documents: a server has more room, and more documents. The first
question of a document is counted too. Reports seconds to the first token (median), seconds in all,
and the share of the prompt tokens that came from the cache. Each setting is a process of its own.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import vllm

from app.batch.plan import planned
from app.batch.questions import Row
from serving.backends.vllm import Vllm
from serving.model import Message, Usage

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 4
BLOCK = 32
OTHER_TOKENS = 80  # of a prompt beside its document, and of its reply
REPLY_TOKENS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=400, help="of a document, about")
    parser.add_argument("--one", type=int, default=20, help="questions about one document")
    parser.add_argument("--many", type=int, default=200, help="questions about several")
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    if options.only:
        sys.stdout.write("\n" + json.dumps(measured(options, *options.only.split(","))) + "\n")
        return
    loads = ("one", "as they come", "planned")
    settings = [f"{load},{caching}" for load in loads for caching in ("off", "on")]
    rows = []
    for setting in settings:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--only", setting],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        rows.append({"setting": setting, **json.loads(done.stdout.strip().splitlines()[-1])})
        print(rows[-1], flush=True)
    shown = ("tokens", "one", "many", "documents")
    command = "python bench/prefix_cache.py MODEL " + " ".join(
        f"--{name} {getattr(options, name)}" for name in shown
    )
    kept = {
        "command": command,
        "vllm": vllm.__version__,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "rows": rows,
    }
    file = options.out / f"prefix-cache-{date.today()}"
    file.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(kept), encoding="utf-8")


def table(kept: dict) -> str:
    """The result as Markdown."""
    lines = [f"# Prefix cache, {date.today()}", "", f"`{kept['command']}`, vLLM {kept['vllm']}", ""]
    names = list(kept["rows"][0])
    lines += ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in kept["rows"]]
    return "\n".join(lines) + "\n"


def measured(options: argparse.Namespace, load: str, caching: str) -> dict[str, float]:
    """One setting."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    texts = documents(options.documents, options.tokens)
    # A few words make more tokens than the average: a tenth more room, or requests would wait.
    blocks = math.ceil(AT_ONCE * 1.1 * (options.tokens + OTHER_TOKENS) / BLOCK)
    model = Vllm(
        options.model,
        ability="tiny",
        context_window=2 * options.tokens + 512,
        dtype="float32",
        enforce_eager=True,
        enable_prefix_caching=caching == "on",
        block_size=BLOCK,
        num_gpu_blocks_override=blocks,
    )
    try:
        if load == "one":
            return timed(model, [texts[0]] * options.one, at_once=1)
        names = [str(n % options.documents) for n in range(options.many)]
        if load == "planned":
            rows = [Row(n, str(n), "", documents=(name,)) for n, name in enumerate(names)]
            names = [row.documents[0] for row in planned(rows, lambda row: row.documents)]
        return timed(model, [texts[int(name)] for name in names], at_once=AT_ONCE)
    finally:
        model.close()


def documents(count: int, tokens: int) -> list[str]:
    """Stretches of the sample book, about so many tokens each."""
    words = (ROOT / "app" / "samples" / "persuasion.txt").read_text("utf-8").split()
    length = int(tokens / 1.35)
    return [" ".join(words[n * length : (n + 1) * length]) for n in range(count)]


def timed(model: Vllm, texts: Sequence[str], *, at_once: int) -> dict[str, float]:
    def ask(numbered: tuple[int, str]) -> tuple[float, Usage]:
        number, text = numbered
        begun = time.perf_counter()
        messages = [
            Message("system", "Answer from the passages."),
            Message("user", f"{text}\n\nQuestion {number}: what is said of number {number}?"),
        ]
        stream = model.stream(messages, max_tokens=REPLY_TOKENS)
        next(stream)
        first = time.perf_counter() - begun
        while True:
            try:
                next(stream)
            except StopIteration as end:
                return first, end.value.usage

    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        ended = list(pool.map(ask, enumerate(texts)))
    usage = sum((spent for _, spent in ended), Usage())
    return {
        "questions": len(texts),
        "first_token_s": round(statistics.median(first for first, _ in ended), 3),
        "seconds": round(time.perf_counter() - begun, 1),
        "prompt_tokens": usage.prompt_tokens,
        "cached": round(usage.cached_tokens / usage.prompt_tokens, 3),
    }


if __name__ == "__main__":
    main()
