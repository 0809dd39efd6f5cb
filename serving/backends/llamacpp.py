"""The embedded default: a GGUF file run by llama.cpp in this process, on the CPU or its GPU.

xllamacpp's server listens on the loopback interface, behind a key of its own, and is spoken to as
any other server: one code path, and the prompt cache, grammar and batching are llama.cpp's.
"""

import os
import secrets
from pathlib import Path

from serving.backends.openai import OpenAIServer
from serving.errors import ModelNotFound
from serving.model import Ability


class LlamaCpp(OpenAIServer):
    """A model file."""

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
            context_window: Tokens of prompt and reply; costs memory.
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

        threads = num_threads or len(os.sched_getaffinity(0))
        key = secrets.token_urlsafe(24)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context_window
        params.n_parallel = 1
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.hostnames = ["127.0.0.1"]
        params.api_keys = [key]
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelNotFound(f"llama.cpp cannot load {path}: {error}") from error
        super().__init__(self._server.listening_address, api_key=key, ability=ability)
        self.name = name or path.stem

    def close(self) -> None:
        """Gives the model's memory back."""
        super().close()
        del self._server
