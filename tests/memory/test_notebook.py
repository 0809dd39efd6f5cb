import json

import pytest
from parsed import blocks, parse, written

from memory.errors import UnreadableDocument


def test_text_code_and_what_it_printed_in_order(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Whales\n", "\n", "Some *words*."]},
        {
            "cell_type": "code",
            "source": "x = 1\nx",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "1", "image/png": "xx"}},
                {"output_type": "error", "evalue": "division by zero"},
            ],
        },
    ]
    parts = parse("notebook", written(tmp_path, "a.ipynb", json.dumps({"cells": cells})))
    assert [(b.kind, b.text) for b in blocks(parts)] == [
        ("heading", "Whales"),
        ("paragraph", "Some words."),
        ("code", "x = 1\nx"),
        ("code", "red"),
        ("code", "1"),
        ("code", "division by zero"),
    ]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_says_so(tmp_path, content):
    with pytest.raises(UnreadableDocument, match="no Jupyter notebook"):
        parse("notebook", written(tmp_path, "a.ipynb", content))
