"""What a batch takes, before it begins and while it comes on."""

import json

import pytest

from app.batch.batch import Batch
from app.batch.course import Course
from app.batch.estimate import Means, estimate
from app.batch.questions import Row
from app.batch.report import summed
from serving.model import Usage

ROWS = [Row(n, str(n), "x" * 80) for n in range(9)]
MEANS = Means(1_000, calls=2, values=0, prompt_tokens_per_s=60, completion_tokens_per_s=10)


def report(*rows):
    lines = (
        {"row": n, "id": str(n), "question": "?", "status": "ok", "found": True} | row
        for n, row in enumerate(rows)
    )
    return summed(lines, total=len(rows), settings={})


def test_from_sizes_every_call_has_a_full_prompt():
    sizes = estimate(ROWS, MEANS, report())
    assert (sizes.rows, sizes.calls, sizes.sample) == (9, 18, 0)
    assert sizes.prompt_tokens == 18 * (1_000 + 120 + 20)
    assert sizes.hours == pytest.approx((18 * 1_140 / 60 + 9 * 40 / 10) / 3_600)


def test_from_rows_that_are_answered_whatever_their_reader_does():
    usage = {"prompt_tokens": 4_000, "cached_tokens": 0, "completion_tokens": 90, "calls": 7}
    few = report(*[{"usage": usage, "seconds": 60.0}] * 4)
    assert estimate(ROWS, MEANS, few).sample == 0
    some = report(*[{"usage": usage, "seconds": 60.0}] * 6)
    sizes = estimate(ROWS, MEANS, some)
    assert (sizes.calls, sizes.prompt_tokens, sizes.completion_tokens) == (63, 36_000, 810)
    assert (sizes.hours, sizes.sample) == (0.15, 6)


def test_a_run_takes_no_more_than_was_said(opened, well, tmp_path):
    source = tmp_path / "q.jsonl"
    source.write_text("".join(f'{{"question": "How deep was it, {n}?"}}\n' for n in range(9)))
    library = opened(*["The well was forty feet deep."] * 20)
    library.add(well)
    with Batch(library, source, tmp_path / "a.jsonl", limit=8) as batch:
        said = batch.estimate()
        list(batch.run())
    taken = [json.loads(line)["usage"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sum(one["prompt_tokens"] for one in taken) <= said.prompt_tokens
    assert sum(one["calls"] for one in taken) == said.calls == 16
    with Batch(library, source, tmp_path / "a.jsonl", dry_run=True) as batch:
        left = batch.estimate()
    assert (left.rows, left.calls, left.sample) == (1, 2, 8)


def test_what_failed_rows_cost_is_counted():
    usage = {"prompt_tokens": 100, "cached_tokens": 40, "completion_tokens": 9, "calls": 2}
    failed = report({"status": "error", "error": "it does not stand there", "usage": usage})
    assert (failed.failed, failed.prompt_tokens, failed.calls, failed.hit_rate) == (1, 100, 2, 0.4)


def test_the_course_says_rate_time_left_tokens_and_hits():
    now = 100.0
    course = Course(50, clock=lambda: now)
    assert str(course) == "no row finished yet"
    for _ in range(5):
        now += 12.0
        course.took(Usage(prompt_tokens=1_000, cached_tokens=250, completion_tokens=20, calls=1))
    assert str(course) == "5.0 rows a minute, 9 min left, 5,000 tokens, 25% of them cached"
    assert course.is_due(60)
    assert not course.is_due(60)
    now += 60
    assert course.is_due(60)
