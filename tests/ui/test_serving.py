"""The command and the frame of the pages."""

import socket

import pytest
from browsing import at_rest
from typer.testing import CliRunner

from app.cli import app
from app.cli_ui import PortTaken, check_port


def test_a_port_that_is_taken_is_named_with_another():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"gistree ui --port {port + 1}"):
            check_port("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(PortTaken, match="--host"):
        check_port("192.0.2.1", 8765)


def test_without_streamlit_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr("app.cli_ui.importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["ui"])
    assert "pip install 'gistree[ui]'" in str(done.exception)


def test_the_page_is_not_opened_where_nobody_sits(monkeypatch, capsys):
    from app.demo import open_page

    monkeypatch.setattr("app.demo.serve", lambda **_: pytest.fail("it was served"))
    open_page(None)
    assert "gistree ui" in capsys.readouterr().out


@pytest.mark.slow
def test_every_page_opens(site, open_page):
    page = open_page(site.url)
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    for name in ("Library", "Read", "Batch", "Status"):
        page.get_by_role("link", name=name).first.click()
        at_rest(page)
        page.get_by_role("heading", name=name).wait_for()
    assert not failures
