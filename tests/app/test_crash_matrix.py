"""A few kills of the crash matrix: adding, deleting and a batch, over one library."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "crash.py"


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_orphaned_by_kills(tmp_path):
    command = [sys.executable, str(SCRIPT), "--kills", "6", "--seed", "7", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["wrong"] == []
