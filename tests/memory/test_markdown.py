import pytest
from parsed import blocks, parse, texts, written

from memory.errors import EmptyDocument

TALE = """---
title: "A tale"
---

# One & two

Text with a note[^x] and another[^y]. `code [^x]` and [^none].

| a | b |
|---|---|
| 1 | x < 2 |

3. first
4. second
   - inner

```python
x = 1
[^x]: not a note
```

[^y]: The second,
    which goes on.
[^x]: The first **note**.

Setext
------

<div>raw <b>html</b></div>
<script>alert(1)</script>
"""


def test_markdown_as_blocks(tmp_path):
    parts = parse("markdown", written(tmp_path, "a.md", TALE))
    assert (parts[0].title, parts[0].media_type) == ("A tale", "text/markdown")
    assert [(b.kind, b.level, b.text) for b in blocks(parts)] == [
        ("heading", 1, "One & two"),
        ("paragraph", 0, "Text with a note[1] and another[2]. code [^x] and [^none]."),
        ("table", 0, "a | b\n1 | x < 2"),
        ("item", 0, "3. first"),
        ("item", 0, "4. second"),
        ("item", 0, "- inner"),
        ("code", 0, "x = 1\n[^x]: not a note"),
        ("heading", 2, "Setext"),
        ("paragraph", 0, "raw html"),
        ("note", 0, "[1] The first note."),
        ("note", 0, "[2] The second, which goes on."),
    ]


def test_a_rule_at_the_start_is_no_front_matter(tmp_path):
    parts = parse("markdown", written(tmp_path, "a.md", "---\n\nText\n\n---\n\nMore\n"))
    assert texts(parts) == ["Text", "More"]


def test_zero_bytes(tmp_path):
    with pytest.raises(EmptyDocument):
        parse("markdown", written(tmp_path, "a.md", ""))
