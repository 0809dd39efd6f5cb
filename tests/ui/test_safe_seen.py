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
            seen = page.evaluate(IN_CASE, number)
            assert not seen["links"], text
            assert not seen["images"], text
            line = re.sub(r"\s+", " ", text)
            told = re.sub(r"\s+", " ", seen["text"].replace("\u2060", ""))
            assert told.count(line) >= 11, (text, seen["text"])
    finally:
        server.terminate()
        server.wait(20)
