"""The examples of docs/adapters.md run as they stand."""

import re
from pathlib import Path

import pytest

pytest.importorskip("langchain_core", reason="needs the extra; make test-extras")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
]

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_has_an_example_for_each_adapter():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example, opened, lamp, tmp_path, monkeypatch, capsys):
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    monkeypatch.setenv("GISTREE_PRUNER", "none")
    said = "The schooner Petrel struck the reef."
    library = opened(said, said)
    library.add(lamp)
    chat_model = GenericFakeChatModel(messages=iter([said]))
    exec(example, {"library": library, "folder": library.place.folder, "chat_model": chat_model})
    assert re.search("Petrel|calls=1", capsys.readouterr().out)
