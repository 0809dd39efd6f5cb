import contextlib
import subprocess
import sys
import time

from app.owner import Heartbeat, at_work, is_dead, new_owner


def test_this_worker_lives_and_names_differ():
    assert not is_dead(new_owner())
    assert new_owner() != new_owner()


def test_a_worker_that_ended_is_dead():
    code = "from app.owner import new_owner; print(new_owner())"
    owner = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert is_dead(owner)


def test_a_worker_of_this_process_whose_work_failed_is_dead():
    with at_work() as well:
        pass
    with contextlib.suppress(OSError), at_work() as failed:
        raise OSError
    assert not is_dead(well)
    assert is_dead(failed)


def test_nobody_can_tell_of_another_machine():
    assert not is_dead("elsewhere:1:1:abc")
    assert not is_dead("")


def test_the_heart_beats_until_it_is_told_that_the_work_is_lost():
    beats = []

    def beat() -> bool:
        beats.append(time.monotonic())
        return len(beats) < 3

    with Heartbeat(beat, every_s=0.01) as heart:
        assert heart.lost.wait(5)
    assert len(beats) == 3
