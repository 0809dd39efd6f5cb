"""Settings: where they come from, and what is said of those that cannot be used."""

import pytest

from app import settings as kept
from app.settings import BadSettings, Settings, save


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "config" / "settings.toml"
    path.parent.mkdir()
    monkeypatch.setattr(kept, "settings_file", lambda: path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"GISTREE_{name.upper()}", raising=False)
    return path


def test_arguments_before_the_environment_before_the_file(file, monkeypatch):
    file.write_text('model = "file"\nreader = "file"\nembedder = "file"\n')
    monkeypatch.setenv("GISTREE_READER", "environment")
    monkeypatch.setenv("GISTREE_EMBEDDER", "environment")
    settings = Settings(embedder="argument")
    assert (settings.model, settings.reader, settings.embedder) == (
        "file",
        "environment",
        "argument",
    )
    assert settings.pruner == "evidence"


def test_a_misspelt_name_in_the_file_is_named_with_its_file(file):
    file.write_text('modle = "x"\n')
    with pytest.raises(BadSettings, match="no setting is named 'modle'; did you mean 'model'") as e:
        Settings()
    assert str(file) in str(e.value)
    assert "budget_tokens" in str(e.value), "the known names are listed"
    assert "pydantic" not in str(e.value)


def test_a_bad_value_is_named_with_its_place(file, monkeypatch):
    file.write_text("budget_tokens = -5\n")
    with pytest.raises(BadSettings, match=r"'budget_tokens' in .*settings\.toml cannot be used"):
        Settings()
    file.unlink()
    monkeypatch.setenv("GISTREE_THREADS", "many")
    with pytest.raises(BadSettings, match=r"GISTREE_THREADS='many' cannot be used: .*integer"):
        Settings()
    monkeypatch.delenv("GISTREE_THREADS")
    with pytest.raises(BadSettings, match=r"^the setting 'threads' cannot be used"):
        Settings(threads=-1)


@pytest.mark.parametrize("content", [b"model = ", b"\xff\xfe", b"[model"])
def test_a_file_that_is_no_toml_is_named(file, content):
    file.write_bytes(content)
    with pytest.raises(BadSettings, match=r"settings\.toml cannot be read"):
        Settings()
    with pytest.raises(BadSettings, match=r"settings\.toml cannot be read"):
        save(model="x")
    assert file.read_bytes() == content


def test_saving_keeps_the_rest(file):
    save(model="one")
    save(reader="full")
    assert file.read_text() == 'model = "one"\nreader = "full"\n'
    assert Settings().reader == "full"


def test_a_folder_that_takes_no_file_is_named(file, monkeypatch):
    monkeypatch.setattr(kept, "settings_file", lambda: file / "settings.toml")
    file.write_text("")
    with pytest.raises(BadSettings, match="cannot be"):
        save(model="x")
