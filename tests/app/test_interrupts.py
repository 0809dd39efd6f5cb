"""Ctrl-C at a moment when Python drops it."""

import os
import signal
import sys
import time
import weakref

import pytest

from app import cli
from app.interrupts import repeat_dropped_interrupts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Thing:
    """Can be referred to."""


class Finalized:
    """Ctrl-C comes while this is taken away."""

    def __del__(self):
        ctrl_c()


def ctrl_c(_=None):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):  # it is raised in here
        pass


def in_a_finalizer():
    Finalized()


def in_a_callback():
    thing = Thing()
    reference = weakref.ref(thing, ctrl_c)
    del thing
    assert reference() is None


def go_on():
    ends = time.monotonic() + 10
    while time.monotonic() < ends:
        time.sleep(0.5)
    pytest.fail("it was lost")


@pytest.fixture(autouse=True)
def _hook(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)


@pytest.mark.parametrize("drop", [in_a_finalizer, in_a_callback])
def test_ctrl_c_that_python_drops_comes_again(drop, monkeypatch, capsys):
    reached = []

    def command():
        drop()
        reached.append(True)
        go_on()

    monkeypatch.setattr(cli, "app", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert reached  # Python had dropped it
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\ninterrupted; what was finished is kept\n"


def test_what_else_is_dropped_is_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    repeat_dropped_interrupts()

    class Wrong:
        def __del__(self):
            raise RuntimeError("wrong")

    Wrong()
    assert [each.exc_type for each in told] == [RuntimeError]
