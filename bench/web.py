"""What the web page's server holds in memory, and how long a page takes to open.

    python bench/web.py [--chromium /usr/bin/chromium] [--upload-mb 200] [--sessions 10] [--ask]

Starts ``gistree ui`` over a library of its own and uses it through a browser without a window:
idle, with a number of sessions at once, while a large file is uploaded and after, and (``--ask``)
after a question to the default model. ``resident`` counts what the process has in memory, files
that it maps included; ``own`` what would be free without it. A model's weights are a mapped file:
the system drops them from memory when something else needs it. Processes that read documents in
are counted apart (``workers``); they end when there is nothing to do.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from datetime import date
from pathlib import Path

import psutil
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
MB = 1e6
KEEP_MODEL_S = 20  # by default ten minutes


def start(folder: Path) -> tuple[subprocess.Popen, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "ui", "--port", str(port), "--no-browser"],
        cwd=ROOT,
        env={
            **os.environ,
            "GISTREE_LIBRARY": str(folder / "library"),
            "GISTREE_KEEP_MODEL_S": str(KEEP_MODEL_S),
        },
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(f"{url}/_stcore/health"):
            return process, url
        time.sleep(0.1)
    raise TimeoutError("the server did not start")


def memory(process: psutil.Process) -> dict[str, float]:
    held = process.memory_full_info()
    workers = sum(child.memory_info().rss for child in process.children(recursive=True))
    return {
        "resident_mb": round(held.rss / MB, 1),
        "own_mb": round(held.uss / MB, 1),
        "workers_mb": round(workers / MB, 1),
    }


class Peak:
    """Highest resident memory while the block lasts, MB."""

    def __init__(self, process: psutil.Process) -> None:
        self.process, self.mb, self.done = process, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        """Looks fifty times a second."""
        while not self.done.wait(0.02):
            self.mb = max(self.mb, self.process.memory_info().rss / MB)

    def __enter__(self) -> "Peak":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def rest(page) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')


def pages_open(page, url: str) -> dict[str, float]:
    """Median milliseconds of five openings of each page, from click to rest."""
    took = {}
    for name in ("Status", "Read", "Library"):
        times = []
        for _ in range(5):
            page.get_by_role("link", name="Batch").first.click()
            page.get_by_role("heading", name="Batch").wait_for()
            rest(page)
            begin = time.perf_counter()
            page.get_by_role("link", name=name).first.click()
            page.get_by_role("heading", name=name).first.wait_for()
            times.append((time.perf_counter() - begin) * 1000)
        took[name] = round(statistics.median(times))
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--chromium", default="/usr/bin/chromium")
    options.add_argument("--upload-mb", type=int, default=200)
    options.add_argument("--sessions", type=int, default=10)
    options.add_argument("--ask", action="store_true")
    given = options.parse_args()
    result: dict[str, object] = {"upload_mb": given.upload_mb, "sessions": given.sessions}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        server, url = start(Path(scratch))
        process = psutil.Process(server.pid)
        browser = driver.chromium.launch(executable_path=given.chromium, args=FLAGS)
        try:
            result["started"] = memory(process)
            page = browser.new_page()
            page.goto(url)
            rest(page)
            tale = Path(scratch) / "tale.txt"
            tale.write_text("The schooner Petrel struck the reef in March and sank.\n" * 5)
            page.set_input_files("input[type=file]", str(tale))
            page.get_by_role("button", name="Details").wait_for(timeout=60_000)
            time.sleep(25)  # longer than a worker without work is kept
            result["idle"] = memory(process)
            result["pages_ms"] = pages_open(page, url)
            more = [browser.new_page() for _ in range(given.sessions - 1)]
            for other in more:
                other.goto(url)
                rest(other)
            result["with_sessions"] = memory(process)
            for other in more:
                other.close()
            large = Path(scratch) / "large.pdf"
            with large.open("wb") as file:
                file.write(b"%PDF-1.4\n")
                for _ in range(given.upload_mb):
                    file.write(os.urandom(1_000_000))
            before = memory(process)
            begin = time.perf_counter()
            with Peak(process) as peak:
                page.set_input_files("input[type=file]", str(large))
                page.get_by_role("alert").first.wait_for(timeout=300_000)
            result["upload"] = {
                "before": before,
                "peak_resident_mb": round(peak.mb, 1),
                "seconds_until_refused_as_damaged": round(time.perf_counter() - begin, 1),
            }
            time.sleep(25)
            result["after_upload"] = memory(process)
            if given.ask:
                page.get_by_role("link", name="Read").first.click()
                rest(page)
                page.get_by_placeholder("Ask the documents").fill("When did the Petrel sink?")
                page.keyboard.press("Enter")
                page.get_by_text("March").first.wait_for(timeout=300_000)
                time.sleep(5)
                result["after_a_question"] = memory(process)
                time.sleep(KEEP_MODEL_S + 5)
                result["when_the_model_rests"] = memory(process)
        finally:
            browser.close()
            server.terminate()
            server.wait(30)
    result["machine"] = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "load": os.getloadavg(),
    }
    out = ROOT / "bench" / "results" / f"web-{date.today()}.json"
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
