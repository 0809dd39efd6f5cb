"""Draws the pictures of the web page in docs/pictures/ from the running application.

    python docs/pictures.py

It serves a new library with the sample book and, where $GISTREE_SHARED has it, a PDF; asks the
default model; and takes pictures in Chromium ($GISTREE_CHROMIUM, default /usr/bin/chromium).
"""

import io
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from app.library import Library  # noqa: E402

OUT = ROOT / "docs" / "pictures"
PDF = Path(os.environ.get("GISTREE_SHARED", ROOT.parent / "shared")) / "docs/good/fhs-3.0.pdf"
PAGES = ("library", "batch", "status")
COLOURS = 96
AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def serve(place: Path, **env: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server of the pages, and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "ui", "--port", str(port), "--no-browser"],
        cwd=ROOT,
        env=os.environ | {"GISTREE_LIBRARY": str(place)} | env,
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(f"{url}/_stcore/health"):
            return server, url
        time.sleep(0.1)
    raise SystemExit("the server did not start")


def keep(page: Any, name: str) -> None:
    """A picture of what the browser shows, in few colours: small, and letters stay sharp."""
    from PIL import Image

    page.wait_for_selector(AT_REST)
    page.mouse.move(0, 0)
    page.wait_for_timeout(1_000)
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    file = OUT / f"{name}.png"
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def ask(page: Any, question: str) -> None:
    """Asks and waits for the answer."""
    field = page.locator("[data-testid=stChatInputTextArea]")
    field.fill(question)
    field.press("Enter")
    page.get_by_role("button", name="Stop").wait_for()
    page.get_by_role("button", name="Stop").wait_for(state="detached")
    page.get_by_text("Ask again").last.wait_for()


def draw(browser: Any, url: str) -> None:
    """All pictures."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(120_000)
    for name in PAGES:
        page.goto(f"{url}/{name}")
        keep(page, name)
    page.goto(f"{url}/read")
    keep(page, "read-first")
    page.get_by_role("button", name="Which frigate").click()
    page.get_by_role("button", name="Citation 1").first.click()
    page.locator(".view .highlight").first.wait_for()
    keep(page, "read-book")
    other = browser.new_page(viewport={"width": 1280, "height": 800})
    other.set_default_timeout(120_000)
    other.goto(f"{url}/read")
    other.wait_for_selector(AT_REST)
    ask(other, "How large is Mr Darcy's income?")
    keep(other, "read-not-found")
    if PDF.exists():
        dark = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        dark.set_default_timeout(120_000)
        dark.goto(f"{url}/read")
        dark.wait_for_selector(AT_REST)
        ask(dark, "What must the contents of the root filesystem be adequate to do?")
        dark.get_by_role("button", name="Citation 1").first.click()
        dark.locator(".view .highlight").first.wait_for()
        keep(dark, "read-pdf")


def draw_memory(browser: Any, url: str) -> None:
    """A memory and the way of the question that was asked before."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(120_000)
    page.goto(f"{url}/memory")
    page.wait_for_selector(AT_REST)
    page.get_by_text("Look at its memory").click()
    page.get_by_role("heading", name="Tree").wait_for()
    page.locator("summary .gt-lit").nth(1).scroll_into_view_if_needed()
    keep(page, "memory")


def main() -> None:
    """Fills a library, serves it, draws."""
    from playwright.sync_api import sync_playwright

    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "library"
        with Library(place) as library:
            library.add(Path(str(files("app"))) / "samples" / "persuasion.txt")
            if PDF.exists():
                library.add(PDF, tags=["standards"])
        server, url = serve(place)
        try:
            with sync_playwright() as driver:
                browser = driver.chromium.launch(
                    executable_path=os.environ.get("GISTREE_CHROMIUM", "/usr/bin/chromium"),
                    args=["--no-sandbox", "--disable-gpu"],
                )
                draw(browser, url)
                server.terminate()
                server.wait()
                # Another model's memory is there at once: sentences of the document itself.
                server, url = serve(place, GISTREE_MODEL="smollm2-135m-instruct")
                draw_memory(browser, url)
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
