"""Where a quote stands on a page, and the page as a picture."""

import io

import pytest
from parsed import shared
from pdf_made import lines, made_pdf
from PIL import Image

from memory.pdf_boxes import boxes, render


def test_a_quote_over_two_lines_has_a_box_for_each(tmp_path):
    path = made_pdf(tmp_path, [lines("Call me Ishmael. Some years", "ago, never mind how long.")])
    first, second = boxes(path, 0, "Some years ago")
    assert first.left == pytest.approx(50 + 77, abs=8)  # behind "Call me Ishmael. "
    assert first.top < 60 < first.bottom + 3
    assert second.left == pytest.approx(50, abs=1)
    assert second.right < 80
    assert second.top > first.top + 10


def test_case_spaces_hyphens_and_ligatures_do_not_matter(tmp_path):
    path = made_pdf(tmp_path, [lines("An office of swim-", "ming whales")])
    assert len(boxes(path, 0, "AN  o\ufb03ce of swimming")) == 2


def test_a_quote_that_goes_on_overleaf_is_boxed_on_both_pages():
    path = shared("good/debian-policy.pdf")
    quote = "The license may require derived works to carry a different name"
    (begin,) = boxes(path, 16, quote)
    (rest,) = boxes(path, 17, quote)
    assert begin.top > 600  # the last line of the page above its footnote, not the first such words
    assert rest.top < 80


def test_a_turned_page_has_its_boxes_as_it_is_shown(tmp_path):
    path = made_pdf(tmp_path, [lines("Call me Ishmael.")])
    turned = path.read_bytes().replace(b"/MediaBox [0 0", b"/Rotate 90 /MediaBox [0 0")
    path.write_bytes(turned)
    (box,) = boxes(path, 0, "Ishmael")
    assert box.bottom - box.top > box.right - box.left  # it runs down the page
    assert box.right < 600
    assert box.left > 500


def test_what_is_not_there_has_no_box(tmp_path):
    path = made_pdf(tmp_path, [lines("Call me Ishmael.")])
    assert boxes(path, 0, "Call me Ahab and never again") == []
    assert boxes(path, 0, " - ") == []
    with pytest.raises(IndexError, match="page 1 is asked for and there are 1"):
        boxes(path, 1, "Call")


def test_a_page_is_drawn_within_bounds(tmp_path):
    path = made_pdf(tmp_path, [lines("Call me Ishmael.")])
    assert Image.open(io.BytesIO(render(path, 0, scale=2))).size == (800, 1200)
    width, height = Image.open(io.BytesIO(render(path, 0, scale=4))).size
    assert max(width, height) <= 2500
    large = Image.open(io.BytesIO(render(shared("nasty/huge-page-size.pdf"), 0, scale=4)))
    assert max(large.size) <= 2500
    with pytest.raises(ValueError, match="scale"):
        render(path, 0, scale=0)
