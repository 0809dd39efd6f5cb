"""Two people on one server, each with a library of their own, through a real browser."""

import re

import pytest
from browsing import Site, at_rest
from door import Door, model_cache

pytest.importorskip("authlib", reason="needs the extra login")
pytest.importorskip("joserfc", reason="comes with the extra login")
from login_provider import Provider

pytestmark = pytest.mark.slow


@pytest.fixture
def provider():
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def shared_site(tmp_path, provider):
    """A server that keeps a library for each person."""
    people = {"GISTREE_LIBRARIES": str(tmp_path / "libraries")}
    site = Site(Door(tmp_path, model_cache(), {"GISTREE_MODEL": "http://127.0.0.1:9"} | people))
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text(provider.secrets(site.url))
    site.start()
    yield site
    site.stop()


def log_in(page, provider, sub: str, name: str) -> None:
    provider.person = {"sub": sub, "name": name}
    page.get_by_role("button", name="Log in").click()
    page.get_by_text(name).first.wait_for()
    at_rest(page)


def upload(page, name: str) -> None:
    text = f"The story of {name}. " * 30
    page.set_input_files(
        "input[type=file]", {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    )
    page.locator('[class*="st-key-document-"]', has_text=name.partition(".")[0]).wait_for(
        timeout=60_000
    )


def test_each_person_sees_their_own_library_and_nobody_sees_any_without_login(
    shared_site, provider, open_page, tmp_path
):
    first, second = open_page(shared_site.url), open_page(shared_site.url)
    for page in (first, second):
        page.get_by_role("button", name="Log in").wait_for()
        assert page.locator("input[type=file]").count() == 0
    stranger = open_page(f"{shared_site.url}/read")
    stranger.get_by_role("button", name="Log in").wait_for()
    log_in(first, provider, "1", "Person One")
    log_in(second, provider, "2", "Person Two")
    upload(first, "lamps.txt")
    upload(second, "reefs.txt")
    assert first.get_by_text("reefs").count() == 0
    assert second.get_by_text("lamps").count() == 0
    people = list((tmp_path / "libraries" / "people").iterdir())
    assert sorted(len(list(p.glob("files/*/*"))) for p in people) == [1, 1]
    assert not list((tmp_path / "libraries" / "incoming").iterdir())
    assert not (tmp_path / "library").exists()  # nobody's library is not even made
    first.goto(f"{shared_site.url}/status")
    at_rest(first)
    first.get_by_role("button", name="Use it").click()
    first.get_by_text(re.compile("several people share this model")).wait_for()
    first.get_by_role("button", name="Log out").click()
    first.get_by_role("button", name="Log in").wait_for()
    log_in(first, provider, "1", "Person One")  # the library is theirs again
    first.goto(shared_site.url)
    first.get_by_text("lamps").first.wait_for()
