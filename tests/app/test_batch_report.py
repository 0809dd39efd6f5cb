"""What a batch came to, in numbers and as a page."""

import json

import pytest

from app.batch.batch import Batch
from app.batch.errors import OutputNotWritable
from app.batch.report import check_report, summed, write_report


def row(number, **more):
    usage = {"prompt_tokens": 100, "cached_tokens": 40, "completion_tokens": 5, "calls": 2}
    return {
        **{"row": number, "id": str(number), "status": "ok", "error": "", "found": True},
        **{"question": f"Q{number}?", "seconds": float(number), "usage": usage, **more},
    }


def test_rows_are_counted_by_what_became_of_them():
    rows = [row(1), row(2, found=False), row(3)]
    rows += [{"row": n, "id": str(n), "status": "error", "error": "no such"} for n in (4, 5)]
    report = summed(rows, total=7, settings={"model": "m"})
    assert (report.answered, report.refused, report.failed, report.rows) == (2, 1, 2, 7)
    assert (report.prompt_tokens, report.cached_tokens, report.calls) == (300, 120, 6)
    assert report.hit_rate == pytest.approx(0.4)
    assert [slow.id for slow in report.slowest] == ["3", "2", "1"]
    assert report.errors == (("no such", 2),)
    assert report.seconds == 6.0


def test_only_the_slowest_rows_are_kept():
    report = summed((row(n) for n in range(1_000)), total=1_000, settings={})
    assert [slow.seconds for slow in report.slowest] == [float(n) for n in range(999, 979, -1)]


def test_what_foreign_files_say_stays_text_on_the_page(tmp_path):
    evil = "<script>alert(1)</script>"
    rows = [row(1, id=evil, question=evil), {"row": 2, "status": "error", "error": evil}]
    write_report(
        summed(rows, total=2, settings={"documents": [evil], evil: "x"}), tmp_path / "a.html"
    )
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 5


def test_an_empty_batch_has_a_report_too(tmp_path):
    report = summed([], total=0, settings={})
    write_report(report, tmp_path / "a.html")
    write_report(report, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["hit_rate"] == 0.0


def test_a_report_of_a_real_run(opened, well, tmp_path):
    library = opened(*["The well was forty feet deep."] * 9)
    library.add(well)
    source = tmp_path / "q.jsonl"
    source.write_text('{"question": "How deep was it?"}\n{"question": "?", "document": "no"}\n')
    with Batch(library, source, tmp_path / "a.jsonl") as batch:
        list(batch.run())
        report = batch.report()
    assert (report.answered, report.failed) == (1, 1)
    assert report.settings["model"] == "scripted"


def test_a_report_that_cannot_be_written_is_known_before_the_run(tmp_path):
    with pytest.raises(OutputNotWritable, match="none of"):
        check_report(tmp_path / "report.pdf")
    with pytest.raises(OutputNotWritable, match="no folder"):
        check_report(tmp_path / "none" / "report.html")
