"""Many small files: seconds by the number of workers, and of a second pass.

    python bench/bulk.py [--files 120] [--words 1000] [--workers 1,2,4]

Files are made of the sample book's words. Each run is a process of its own over a new library, with
the real embedder; the second pass adds the same files to the last library again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=120)
    parser.add_argument("--words", type=int, default=1_000)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    book = (ROOT / "app" / "samples" / "persuasion.txt").read_text("utf-8").split()
    with tempfile.TemporaryDirectory(prefix="gistree-bench-") as name:
        scratch = Path(name)
        files = scratch / "files"
        files.mkdir()
        starts = np.random.default_rng(0).integers(0, len(book) - options.words, options.files)
        for number, start in enumerate(starts):
            text = " ".join(book[start : start + options.words])
            (files / f"{number}.txt").write_text(f"{number}\n\n{text}", encoding="utf-8")
        rows = []
        for workers in map(int, options.workers.split(",")):
            library = scratch / f"library-{workers}"
            first, again = (seconds(files, library, workers) for _ in range(2))
            rows.append({"workers": workers, "seconds": first, "second_pass_seconds": again})
            print(rows[-1], flush=True)
    kept = {
        "command": f"python bench/bulk.py --files {options.files} --words {options.words}",
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "rows": rows,
    }
    file = options.out / f"bulk-{date.today()}.json"
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def seconds(files: Path, library: Path, workers: int) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "app.cli", "add", files, "-l", library, "--workers", str(workers)],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return round(time.perf_counter() - begun, 1)


if __name__ == "__main__":
    main()
