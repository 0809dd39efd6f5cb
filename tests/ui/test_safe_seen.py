"""What a real browser makes of foreign text in each kind of place that pages put it."""

import re
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest
from browsing import at_rest, free_port
from test_safe import HOSTILE

SCRIPT = """
import streamlit as st
from ui.safe import block, inline, label
from ui.tables import table

TEXTS = {texts!r}
for number, text in enumerate(TEXTS):
    with st.container(key=f"case-{{number}}"):
        st.button(label(text), key=f"button-{{number}}")
        st.markdown(label(text))
        st.error(label(text))
        st.progress(0.5, text=label(text))
        st.caption(label(text))
        st.html(block(text) + inline(text) + table([(text, text)], head=(text, text)))
        st.selectbox("box", [text], key=f"box-{{number}}")
        st.multiselect("tags", [text], [text], key=f"tags-{{number}}")
        st.text_input("field", text, key=f"field-{{number}}")
        with st.expander(label(text)):
            st.write("inside")
"""

IN_CASE = """
number => {
  const at = document.querySelector(`.st-key-case-${number}`);
  return {
    links: [...at.querySelectorAll('a, script, iframe, .katex')].map(e => e.outerHTML),
    images: [...at.querySelectorAll('img')].map(e => e.outerHTML),
    text: at.innerText,
  };
}
"""

PLACES = 11  # of each text that can be read: a box, for one, may cut it short


def times_told(seen, text) -> int:
    line = re.sub(r"\s+", " ", text)
    return re.sub(r"\s+", " ", seen["text"].replace("\u2060", "")).count(line)


def shown(page, number, text):
    """A case as the page shows it in the end: it fetches some kinds of element when it meets them,
    long after the script behind it has come to rest."""
    deadline = time.monotonic() + 60
    while True:
        seen = page.evaluate(IN_CASE, number)
        if times_told(seen, text) >= PLACES or time.monotonic() > deadline:
            return seen
        page.wait_for_timeout(100)


@pytest.mark.slow
def test_foreign_text_is_shown_letter_by_letter(tmp_path, open_page):
    script, port = tmp_path / "places.py", free_port()
    script.write_text(SCRIPT.format(texts=HOSTILE), encoding="utf-8")
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}"),
            *("--server.headless=true", "--browser.gatherUsageStats=false"),
        ],
        stdout=subprocess.DEVNULL,
        env={"PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "PATH": ""},
    )
    try:
        for _ in range(300):
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health"),
            ):
                break
            time.sleep(0.1)
        page = open_page(f"http://127.0.0.1:{port}")
        at_rest(page)
        page.locator(f".st-key-case-{len(HOSTILE) - 1} details").wait_for()
        for number, text in enumerate(HOSTILE):
            seen = shown(page, number, text)
            assert times_told(seen, text) >= PLACES, (text, seen["text"])
            assert not seen["links"], text
            assert not seen["images"], text
    finally:
        server.terminate()
        server.wait(20)
