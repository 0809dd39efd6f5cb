"""How long turning a page takes: in the library's API, and in the browser from click to picture.

    python bench/pages.py [PDF] [--out bench/results/pages.json]

Without a PDF it takes the longest of the documents in $GISTREE_SHARED. The browser is Chromium
without a window, on the same machine; each turn is one click on "Next page".
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "retrieval")]
from fakes import HashingEmbedder  # noqa: E402  (turning pages asks for no vectors)

from app.library import Library  # noqa: E402
from app.settings import Settings  # noqa: E402

SHARED = Path(os.environ.get("GISTREE_SHARED", ROOT.parent / "shared"))
TURNS = 40
PORT = 9_871


def summary(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "turns": len(ordered),
        "median_ms": round(1000 * statistics.median(ordered), 1),
        "p95_ms": round(1000 * ordered[int(0.95 * (len(ordered) - 1))], 1),
        "max_ms": round(1000 * ordered[-1], 1),
    }


def in_api(library: Library, key: str) -> dict[str, dict[str, float]]:
    """Pages that follow each other, drawn ahead while one reads for a moment, and jumps."""
    source = library.sources.open(key)
    source.sheet(0, width_pixels=1100)
    far = np.random.default_rng(7).permutation(len(source.parts))[:TURNS].tolist()
    times: dict[str, list[float]] = {"next": [], "jump": []}
    for kind, pages in (("next", range(100, 100 + TURNS)), ("jump", far)):
        for page in pages:
            started = time.perf_counter()
            source.sheet(int(page), width_pixels=1100)
            times[kind].append(time.perf_counter() - started)
            time.sleep(0.4)
    return {kind: summary(seconds) for kind, seconds in times.items()}


def in_browser(place: Path, key: str) -> dict[str, float]:
    """From the click to the next page's picture on the screen."""
    from playwright.sync_api import sync_playwright

    server = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "ui", "--port", str(PORT), "--no-browser"],
        cwd=ROOT,
        env=os.environ | {"GISTREE_LIBRARY": str(place), "GISTREE_MODEL": "http://127.0.0.1:9"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/_stcore/health"),
            ):
                break
            time.sleep(0.1)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=os.environ.get("GISTREE_CHROMIUM", "/usr/bin/chromium"),
                args=["--no-sandbox", "--disable-gpu"],
            )
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(f"http://127.0.0.1:{PORT}/read?source={key}:400000-400040")
            page.locator(".page img").wait_for()
            first = int(page.get_by_label("Page", exact=True).input_value())
            times = []
            for number in range(first + 1, first + 1 + TURNS):
                time.sleep(0.6)
                started = time.perf_counter()
                page.get_by_role("button", name="Next page").click()
                page.locator(f'.view[aria-label$="Page {number}"] img').wait_for()
                times.append(time.perf_counter() - started)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return summary(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pdf", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "pages.json")
    given = parser.parse_args()
    path = given.pdf or SHARED / "docs" / "good" / "octave-manual-1100p.pdf"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "library"
        with Library(place, settings=Settings(), embedder=HashingEmbedder()) as library:
            entry = library.add(path)
            found = {"pages": entry.num_pages, "api": in_api(library, entry.id)}
        found["browser"] = in_browser(place, entry.id)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(given.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
