"""The page of the state alone, without a server."""

import pytest
from streamlit.testing.v1 import AppTest

from app.doctor import Finding
from app.service import services
from app.settings import Settings


def draw() -> None:
    from ui.status_page import page

    page()


@pytest.fixture
def page(library, monkeypatch):
    found = [
        Finding("processor", "2 <b>cores</b>"),
        Finding("embedder", "not in the cache", "gistree models fetch minilm-l6-v2-int8"),
        Finding("reading pace", "not measured yet", "gistree doctor --measure"),
    ]
    monkeypatch.setattr("ui.status_page._machine", lambda _: found)
    return AppTest.from_function(draw, default_timeout=20).run()


def html(page) -> str:
    return "\n".join(str(element.proto) for element in page.get("html"))


def press(page, label):
    next(button for button in page.button if button.label == label).click()
    return page.run()


def test_findings_are_tables_of_plain_text(page):
    assert not page.exception
    assert "2 &lt;b&gt;cores&lt;/b&gt;" in html(page)
    assert "gistree doctor --measure" in html(page)
    assert "nothing asked yet" in html(page)


def test_advice_to_fetch_a_model_is_one_click(page, library):
    press(page, "Fetch it")
    press(page, "Fetch it")
    assert [(job.kind, job.name) for job in library.jobs.list()] == [("fetch", "minilm-l6-v2-int8")]


def test_a_model_that_is_not_there_is_refused_in_words(page, library):
    page.text_input[0].set_value("nowhere.gguf")
    press(page, "Use it")
    assert page.error
    assert library.settings.model == "auto"


def test_a_server_can_be_chosen_and_is_kept(page, library):
    page.text_input[0].set_value("http://127.0.0.1:9#parrot")
    press(page, "Use it")
    assert not page.error
    assert services().of("").settings.model == library.settings.model == "http://127.0.0.1:9#parrot"
    assert Settings().model == "http://127.0.0.1:9#parrot"


def test_the_pace_is_measured_in_the_background(page, library):
    press(page, "Measure its pace")
    assert [job.kind for job in library.jobs.list()] == ["measure"]
