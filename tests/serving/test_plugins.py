import pytest

from serving.errors import BadOption, UnknownName
from serving.plugins import load, make, names


def test_a_file_in_the_folder_is_a_plugin():
    assert {"full", "oprag"} <= set(names("agents.readers"))
    assert load("agents.readers", "oprag").__name__ == "OpragReader"


@pytest.mark.parametrize("package", ["agents.readers", "retrieval.pruners", "memory.parsers"])
def test_every_plugin_names_one_class_that_needs_no_argument(package):
    for name in names(package):
        assert type(make(package, name)).__name__.lower().startswith(name.replace("_", ""))


def test_options_follow_the_name():
    assert make("agents.readers", "oprag").top_k == 0
    reader = make("agents.readers", "oprag:top_k=20,order=relevance")
    assert (reader.top_k, reader.order) == (20, "relevance")
    pruner = make("retrieval.pruners", "evidence:threshold=0.5")
    assert pruner.threshold == 0.5


def test_what_is_wrong_with_a_name_or_option_is_said():
    with pytest.raises(UnknownName, match="no reader is named 'magic'; known: "):
        make("agents.readers", "magic")
    with pytest.raises(
        UnknownName, match=r"no option of oprag is named 'topk'; known: .*order, top_k"
    ):
        make("agents.readers", "oprag:topk=3")
    with pytest.raises(BadOption, match="oprag:top_k cannot be 'many'"):
        make("agents.readers", "oprag:top_k=many")
    with pytest.raises(BadOption, match="oprag:order cannot be"):
        make("agents.readers", "oprag:order=backwards")
