"""Without its extra, an adapter says what to install."""

import importlib
import sys

import pytest

from serving.errors import MissingExtra


@pytest.mark.parametrize(
    ("module", "needs", "extra"),
    [
        ("app.langchain", "langchain_core", "langchain"),
        ("serving.backends.langchain", "langchain", "langchain"),
        ("app.llama_index", "llama_index", "llama-index"),
        ("app.mcp", "mcp", "mcp"),
    ],
)
def test_an_adapter_names_its_extra(monkeypatch, module, needs, extra):
    for name in [n for n in sys.modules if n == module or n.split(".")[0] == needs]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, needs, None)
    with pytest.raises(MissingExtra, match=rf"gistree\[{extra}\]"):
        importlib.import_module(module)
