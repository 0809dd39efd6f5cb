"""What every test needs."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def _interrupts_reach_children():
    """A runner in the background ignores Ctrl-C, and what it starts would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
