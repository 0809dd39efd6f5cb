import sys

import pytest

from serving.errors import BadOption, MissingExtra, ModelNotFound, ModelUnavailable, UnknownName
from serving.vllm_command import Engine, Machine, Serving, command, engine, machine

LAPTOP = Machine(num_gpus=0, memory_bytes=24 * 2**30)
ENGINE = Engine("/venv/bin/python", "0.32.0", has_plugin=True)


def made(model="qwen2.5-coder-1.5b-instruct", machine=LAPTOP, engine=ENGINE, **options):
    return command(Serving(model, **options), machine, engine)


def value(argv, flag):
    return argv[argv.index(flag) + 1]


def test_a_model_of_the_catalogue_is_served_under_its_name_with_what_gistree_relies_on():
    made_ = made()
    assert made_.argv[0] == "/venv/bin/python"
    assert value(made_.argv, "--model") == "Qwen/Qwen2.5-Coder-1.5B-Instruct"
    assert value(made_.argv, "--served-model-name") == "qwen2.5-coder-1.5b-instruct"
    assert value(made_.argv, "--host") == "127.0.0.1"
    assert value(made_.argv, "--max-model-len") == "32768"
    for flag in (
        "--enable-prefix-caching",
        "--enable-chunked-prefill",
        "--enable-prompt-tokens-details",
    ):
        assert flag in made_.argv


def test_a_processor_keeps_a_part_of_its_memory_for_keys_and_values():
    assert made().environment["VLLM_CPU_KVCACHE_SPACE"] == "9"
    assert "VLLM_CPU_KVCACHE_SPACE" not in made(machine=Machine(1, 2**36)).environment


@pytest.mark.parametrize(("there", "share"), [(0, 1), (1, 1), (2, 2), (3, 2), (7, 4), (8, 8)])
def test_gpus_share_a_model_by_powers_of_two(there, share):
    argv = made(machine=Machine(there, 2**36)).argv
    assert ("--tensor-parallel-size" in argv) == (share > 1)
    if share > 1:
        assert value(argv, "--tensor-parallel-size") == str(share)


@pytest.mark.parametrize(("visible", "gpus"), [("0,1", 2), ("", 0), ("-1", 0), ("3", 1)])
def test_hidden_gpus_do_not_count(visible, gpus):
    assert machine(visible).num_gpus == gpus


def test_more_gpus_than_there_are():
    with pytest.raises(BadOption, match="2 GPUs are asked for, and there are 1"):
        made(machine=Machine(1, 2**36), gpus=2)


def test_a_folder_and_a_repository(tmp_path):
    folder = tmp_path / "my model"
    folder.mkdir()
    with pytest.raises(ModelNotFound, match=r"no config\.json"):
        made(str(folder))
    (folder / "config.json").write_text("{}")
    argv = made(str(folder)).argv
    assert value(argv, "--model") == str(folder)
    assert "--max-model-len" not in argv  # the model says it
    assert f"'{folder}'" in str(made(str(folder)))  # fit for a shell
    assert value(made("owner/name").argv, "--model") == "owner/name"


def test_what_cannot_be_served_lists_what_can():
    with pytest.raises(UnknownName, match=r"qwen3-8b"):
        made("nope")
    with pytest.raises(ModelNotFound, match=r"minilm-l6-v2 is not for vLLM; these are: .*qwen3-8b"):
        made("minilm-l6-v2")


def test_further_arguments_come_last():
    assert made(more=("--max-model-len", "64")).argv[-2:] == ("--max-model-len", "64")


def test_sparse_attention_goes_by_the_environment_and_says_where_it_will_be_dense():
    sparse = made(attention="quest:budget=1024")
    assert sparse.environment["GISTREE_ATTENTION"] == "quest:budget=1024"
    assert "GISTREE_ATTENTION=quest:budget=1024" in str(sparse)
    assert sparse.argv[-2:] == ("--block-size", "32")
    assert "--block-size" not in made(attention="quest", machine=Machine(1, 2**36)).argv
    assert sparse.notes == ()
    (note,) = made(attention="quest", kv_dtype="fp8").notes
    assert "dense" in note
    assert "fp8" in note
    (note,) = made(attention="quest", machine=Machine(1, 2**36)).notes
    assert "dense" in note
    (note,) = made(attention="quest", engine=Engine("/p", "0.99.1", True)).notes
    assert "0.99.1" in note
    with pytest.raises(BadOption, match="needs gistree beside vLLM: /p -m pip install gistree"):
        made(attention="quest", engine=Engine("/p", "0.32.0", False))


def test_where_there_is_no_vllm(tmp_path):
    try:
        import vllm  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"gistree\[vllm\]"):
            engine()
        with pytest.raises(ModelUnavailable, match="has no vLLM"):
            engine(sys.executable)
    with pytest.raises(ModelUnavailable, match="no Python that works"):
        engine(str(tmp_path))


def test_vllm_in_this_process_says_which_extra_it_needs():
    from importlib.util import find_spec

    from serving.backends.vllm import Vllm

    if find_spec("vllm") is not None:
        pytest.skip("vLLM is installed here")
    with pytest.raises(MissingExtra, match=r"gistree\[vllm\]"):
        Vllm("folder")
