"""The embedded default: a GGUF file run by llama.cpp in this process, on the CPU or its GPU.

xllamacpp's server listens on the loopback interface, behind a key of its own, and is spoken to as
any other server: one code path, and the prompt cache, grammar and queue are llama.cpp's.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from serving.backends.openai import OpenAIServer
from serving.errors import ModelNotFound
from serving.model import Ability

__all__ = ["LlamaCpp"]

_KEPT_PROMPTS_MIB = 1_024
_SILENT = -1


class LlamaCpp(OpenAIServer):
    """A model file.

    One request is computed at a time; those of other threads wait. What two requests begin with
    alike is not computed again, and so are beginnings that were used before, within 1 GiB.
    """

    num_at_once: int = 1

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        ability: Ability = "small",
        context_window: int = 8_192,
        num_threads: int = 0,
    ) -> None:
        """Loads the model, which takes seconds.

        Args:
            path: A GGUF file.
            name: What to call it; the file's name where not given.
            ability: What it can be trusted with.
            context_window: Tokens of prompt and reply, at most those that the model was trained
                for; costs memory. 0 takes all of those.
            num_threads: 0 takes the cores that this process may use.

        Raises:
            ModelNotFound: no such file, or llama.cpp cannot load it.
        """
        if not path.is_file():
            raise ModelNotFound(f"there is no model file {path}; see: gistree models list")
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelNotFound(f"{path} is no GGUF file; fetch one: gistree models list")
        # Waiting threads of the OpenMP runtime must not spin: on shared cores they steal the time
        # that the working ones need. It is read when the library is loaded, so it is set here.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("GOMP_SPINCOUNT", "0")
        import xllamacpp

        key = secrets.token_urlsafe(24)
        params = _params(xllamacpp.CommonParams(), path, key)
        params.n_ctx = context_window
        params.cpuparams.n_threads = num_threads or usable_cores()
        params.cpuparams_batch.n_threads = num_threads or usable_cores()
        try:
            self._server: Any = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelNotFound(
                f"llama.cpp cannot load {path} ({error}); the file may be cut off, of a newer "
                "kind, or too large for this machine's memory"
            ) from error
        super().__init__(self._server.listening_address, api_key=key, ability=ability)
        self.context_window = min(self.context_window, self._trained_window())
        self.name = name or path.stem

    def close(self) -> None:
        """Gives the model's memory back."""
        super().close()
        self._server = None

    def _trained_window(self) -> int:
        """Beyond it a model's replies fall apart, and llama.cpp would only warn."""
        meta = self._entry(self._model).get("meta") or {}
        return int(meta.get("n_ctx_train") or self.context_window)


def _params(params: Any, path: Path, key: str) -> Any:
    params.model.path = str(path)
    params.n_parallel = 1
    params.cache_ram_mib = _KEPT_PROMPTS_MIB
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.verbosity = _SILENT
    params.warmup = False
    params.ui = False
    return params


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
