"""The library's page alone, without a server."""

import time

import pytest
from streamlit.testing.v1 import AppTest

from app.job_run import run_job
from app.owner import new_owner
from app.sample import QUESTIONS


def draw() -> None:
    from ui.library_page import page

    page()


@pytest.fixture
def page(library):
    return AppTest.from_function(draw, default_timeout=20).run()


def work(library):
    for job in library.jobs.list():
        owner = new_owner()
        if library.jobs.book.claim(job.id, owner=owner, now=time.time()):
            run_job(library, job, owner=owner, secret=library.jobs.take_secret(job.id))


def shown(page) -> str:
    elements = [*page.markdown, *page.get("html"), *page.caption, *page.error, *page.warning]
    return "\n".join(str(element.proto) for element in elements)


def press(page, name):
    next(b for b in page.button if b.label == name).click()
    return page.run()


def labels(page):
    return [b.label for b in page.button]


def test_an_empty_library_offers_the_sample_book_and_three_questions(page, library, monkeypatch):
    monkeypatch.setattr("ui.adding.missing_models", lambda _: ("some-model",))
    monkeypatch.setattr("ui.adding.size_of", lambda _: 5_000_000)
    page.run()
    assert all(question.split("'")[0] in shown(page) for question in QUESTIONS)
    assert "5.0 MB" in page.caption[0].value.replace("\\", "")
    press(page, "Read the sample book")
    assert [(job.kind, job.name) for job in library.jobs.list()] == [
        ("fetch", "some-model"),
        ("add", "persuasion.txt"),
    ]
    assert "Nothing here yet" not in shown(page)


def test_what_is_uploaded_is_ordered_and_the_uploader_emptied(page, library):
    page.multiselect[0].set_value([]).run()
    page.file_uploader[0].upload("lamp.txt", b"A lamp.").upload(".DS_Store", b"x").run()
    assert not page.exception
    assert [job.name for job in library.jobs.list()] == ["lamp.txt"]
    assert page.file_uploader[0].value in (None, [])
    work(library)
    page.run()
    assert "1 document, 2 words" in page.caption[-1].value


def test_a_job_is_paused_goes_on_and_is_cancelled_by_its_buttons(page, library, tmp_path):
    (tmp_path / "a.txt").write_text("A lamp.")
    library.jobs.add_file(tmp_path / "a.txt")
    page.run()
    assert {"Pause", "Cancel"} <= set(labels(page))
    press(page, "Pause")
    assert library.jobs.list()[0].state == "paused"
    press(page, "Go on")
    assert library.jobs.list()[0].state == "queued"
    press(page, "Cancel")
    assert library.jobs.list() == ()


def test_what_failed_says_why_and_can_be_tried_again_or_dismissed(page, library, tmp_path):
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    library.jobs.add_file(tmp_path / "broken.pdf")
    work(library)
    page.run()
    assert "broken" in page.error[0].value
    press(page, "Try again")
    assert library.jobs.list()[0].state == "queued"
    work(library)
    press(page.run(), "Dismiss")
    assert library.jobs.list() == ()


def test_an_encrypted_file_asks_for_its_password(page, library, tmp_path, monkeypatch):
    from memory.errors import PasswordNeeded

    given = []

    def add(path, *, password, **_):
        given.append(password)
        raise PasswordNeeded("'x.pdf' needs a password (it is encrypted); give it")

    monkeypatch.setattr(library, "add", add)
    (tmp_path / "x.pdf").write_bytes(b"%PDF")
    library.jobs.add_file(tmp_path / "x.pdf")
    work(library)
    page.run()
    assert "--password" not in shown(page)
    page.text_input[0].set_value("open sesame")
    press(page, "Open it")
    work(library)
    assert given == [None, "open sesame"]


def test_a_deleted_document_is_gone_at_once_and_comes_back_by_undo(page, library):
    library.add(b"A lamp.", name="lamp.txt")
    page.run()
    press(page, "Delete")
    assert "Details" not in labels(page)
    undo = next(name for name in labels(page) if name.startswith("Undo"))
    press(page, undo)
    assert "Details" in labels(page)
    assert library.list()


def test_documents_are_found_sorted_and_turned_through(page, library):
    for number in range(23):
        library.add(f"Tale {number}.".encode() * (number + 1), name=f"tale-{number:02}.txt")
    library.tag("tale-07", "sea", "old")
    page.run()
    assert labels(page).count("Details") == 20
    page.text_input(key="find").set_value("TALE-1 ").run()
    assert labels(page).count("Details") == 10
    page.text_input(key="find").set_value("").run()
    page.selectbox(key="sort").set_value("Longest first").run()
    assert shown(page).index("tale-22") < shown(page).index("tale-21")
    page.text_input(key="find").set_value("nothing like it").run()
    assert "No document fits" in page.info[0].value


def test_title_and_tags_are_changed_in_the_details(page, library):
    library.add(b"A lamp.", name="lamp.txt")
    press(page.run(), "Details")
    page.text_input[0].set_value("The <b>Lamp</b>")
    press(page, "Keep")
    assert library.list()[0].title == "The <b>Lamp</b>"
    assert "The <b>Lamp" not in shown(page)


def test_a_library_that_cannot_be_changed_offers_no_change(page, library):
    library.add(b"A lamp.", name="lamp.txt")
    library.read_only = True
    page.run()
    assert "Delete" not in labels(page)
    assert not page.file_uploader
