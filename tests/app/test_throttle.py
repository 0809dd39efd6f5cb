import heapq

from app.batch.throttle import Throttle, throttle_for
from serving.scripted import ScriptedLLM


class Server:
    """Has room for ``full`` rows at a time, of about a second each; more only queue."""

    def __init__(self, full: int, *, row_s: float = 1.0, refuses_past: int = 10**9) -> None:
        self.full, self.row_s, self.refuses_past = full, row_s, refuses_past

    def serve(self, throttle: Throttle, rows: int, *, now: float = 0.0) -> tuple[float, list[int]]:
        """Serves rows; returns the time at the end, and the limit after each row."""
        throttle.restart(now=now)
        running: list[float] = []
        limits = []
        for row in range(rows):
            while len(running) < throttle.limit:
                if len(running) >= self.refuses_past:
                    throttle.overloaded(now=now)
                    break
                # A place is free when the row that is `full` before it has ended.
                free = sorted(running)[-self.full] if len(running) >= self.full else now
                heapq.heappush(running, max(now, free) + self.row_s * (0.8 + row * 7 % 10 / 22.5))
            now = heapq.heappop(running)
            throttle.finished(now=now)
            limits.append(throttle.limit)
        return now, limits


def test_the_limit_grows_until_the_server_is_full():
    throttle = Throttle(limit=1, most=64)
    _, limits = Server(16).serve(throttle, 600)
    assert limits[0] == 1
    assert 16 <= limits[-1] <= 24
    assert max(limits) <= 32


def test_rows_of_a_batching_server_come_near_to_as_fast_as_they_can():
    seconds, _ = Server(16).serve(Throttle(limit=4), 640)
    assert seconds < 1.25 * 640 / 16


def test_where_one_row_is_computed_at_a_time_the_limit_stays_low():
    _, limits = Server(1).serve(Throttle(limit=1, most=64), 200)
    assert max(limits) == 2
    assert limits.count(1) > 150


def test_a_server_that_is_overloaded_gets_half_and_hears_of_it_once():
    throttle = Throttle(limit=32, most=64)
    throttle.overloaded()
    throttle.overloaded()
    assert throttle.limit == 16
    throttle.finished()
    throttle.overloaded()
    assert throttle.limit == 8


def test_a_server_that_refuses_gets_no_more_than_it_takes():
    _, limits = Server(64, refuses_past=12).serve(Throttle(limit=4), 600)
    assert 6 <= limits[-1] <= 13


def test_it_backs_off_where_rows_come_slower_and_comes_back():
    throttle = Throttle(limit=4, most=64)
    now, before = Server(16).serve(throttle, 400)
    now, slow = Server(16, row_s=3.0).serve(throttle, 400, now=now)
    assert min(slow) < before[-1]
    _, after = Server(16).serve(throttle, 2_000, now=now)
    assert after[-1] >= 14


def test_the_bound_is_the_models_own_and_a_persons_number_holds():
    alone = ScriptedLLM([])
    assert (throttle_for(alone).limit, throttle_for(alone).most) == (1, 2)
    alone.num_at_once = 8
    assert throttle_for(alone).most == 64
    given = throttle_for(alone, 5)
    now, _ = Server(64).serve(given, 200)
    Server(64, row_s=9.0).serve(given, 200, now=now)
    assert given.limit == 5
    given.overloaded()
    assert given.limit == 2
