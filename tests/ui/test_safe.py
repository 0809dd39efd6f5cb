import html

import pytest

from ui.safe import block, inline, label

HOSTILE = [
    "**bold** _it_ ~~gone~~ `code`",
    "[a link](javascript:alert(1)) ![x](http://evil.example/p.png)",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "https://evil.example/a www.evil.example me@evil.example",
    ":smile: :material/home: :red[red] $x^2$ -> -- <= {.class}",
    "# heading",
    "1. list",
    "- list",
    "> quote",
    "a | b\n---|---",
    "ελληνικά – 文書 (final) #1 %20.txt",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_html_holds_no_tag_of_foreign_making(text):
    for made in (block(text), inline(text)):
        inner = made[made.index(">") + 1 : made.rindex("<")]
        assert "<" not in inner
        assert html.unescape(inner) == text


def test_a_label_is_one_line_and_can_be_cut():
    assert label("two\nlines\there") == "two lines here"
    assert label("abcdefghij", max_chars=5) == "abcd…"


def test_letters_of_all_scripts_stay():
    assert label("文書 کتاب Žluťoučký") == "文書 کتاب Žluťoučký"
