"""The page of batches alone, without a server."""

import json
import time

import pytest
from streamlit.testing.v1 import AppTest

from app.batch_orders import latest_answers, result_file
from app.engines import Engines
from app.job_run import run_job
from app.owner import new_owner
from serving.scripted import ScriptedLLM

QUESTIONS = b'question,id\r\n"What <b>sank</b>?",1\r\nWho was her captain?,2\r\n'


def draw() -> None:
    from ui.batch_page import page

    page()


@pytest.fixture
def page(library):
    model = ScriptedLLM(["The Petrel sank."] * 4)
    library.engines = Engines(library.settings, model=model, embedder=library.embedder)
    library.add(b"The schooner Petrel struck the reef in March and sank.", name="lamp.txt")
    return AppTest.from_function(draw, default_timeout=20).run()


def work(library):
    (job,) = library.jobs.list()
    owner = new_owner()
    assert library.jobs.book.claim(job.id, owner=owner, now=time.time())
    run_job(library, job, owner=owner, secret="")
    return library.jobs.get(job.id)


def order(page, name, content):
    page.file_uploader[0].upload(name, content)
    page.selectbox[0].set_value("oprag")
    next(b for b in page.button if b.label == "Answer them").click()
    return page.run()


def html(page) -> str:
    return "\n".join(str(element.proto) for element in page.get("html"))


def test_an_empty_library_says_where_to_begin(library):
    page = AppTest.from_function(draw, default_timeout=20).run()
    assert "empty" in page.info[0].value


def test_a_file_of_questions_is_answered_shown_and_fetched(page, library):
    order(page, "questions.csv", QUESTIONS)
    assert not page.error
    assert not page.exception
    job = work(library)
    assert (job.state, job.said) == ("done", "2 of 2 answered")
    page.run()
    assert "What &lt;b&gt;sank&lt;/b&gt;?" in html(page)
    assert "The Petrel sank." in html(page)
    rows = [
        json.loads(line) for line in result_file(library, job, "jsonl").read_text().splitlines()
    ]
    assert [row["id"] for row in rows] == ["1", "2"]
    assert result_file(library, job, "csv").read_bytes().startswith(b"\xef\xbb\xbfid,")
    library.jobs.tidy(done_for_s=-1)  # it stays until the person dismisses it
    assert latest_answers(library, job)
    next(b for b in page.button if b.label == "Dismiss").click()
    page.run()
    assert library.jobs.list() == ()
    assert list((library.place.folder / "batches").iterdir()) == []


def test_a_file_that_cannot_be_used_is_refused_by_its_name_and_not_kept(page, library):
    order(page, "wrong.csv", b"frage\r\nWas?\r\n")
    assert "wrong" in page.error[0].value
    assert "question" in page.error[0].value
    assert library.jobs.list() == ()
    assert list((library.place.folder / "batches").iterdir()) == []
    assert list((library.place.folder / "incoming").iterdir()) == []


def test_a_cancelled_batch_leaves_nothing(page, library):
    order(page, "questions.csv", QUESTIONS)
    next(b for b in page.button if b.label == "Cancel").click()
    page.run()
    assert library.jobs.list() == ()
    assert list((library.place.folder / "batches").iterdir()) == []


@pytest.mark.parametrize(
    ("citation", "said"),
    [
        ({"label": "iv", "page": 4, "section": [], "position": 0.1}, "page iv"),
        ({"label": "", "page": 4, "section": ["One"], "position": 0.1}, "page 4"),
        ({"label": "", "page": None, "section": ["One", "Two"], "position": 0.1}, "Two"),
        ({"label": "", "page": None, "section": [], "position": 0.126}, "13% in"),
    ],
)
def test_an_answers_place_is_told_whatever_the_format_has(citation, said):
    from ui.batch_page import _places

    assert _places({"citations": [{"title": "Tale", **citation}]}) == f"Tale, {said}"
