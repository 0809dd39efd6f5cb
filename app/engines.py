"""What answers with: the language model, the embedder and the pruner, opened when first needed."""

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from app.lookup import clean
from app.models import choose_model, open_embedder, open_model, paces
from app.settings import Settings
from retrieval.types import Embedder, Pruner
from serving.errors import ModelNotFound
from serving.model import LanguageModel
from serving.plugins import make

_USUAL_BUDGETS = {"tiny": 400, "small": 700, "large": 4_000}


class Engines:
    """The models that a library works with. Several threads may use them."""

    def __init__(
        self, settings: Settings, *, model: LanguageModel | None, embedder: Embedder | None
    ) -> None:
        """Opens nothing yet.

        Args:
            settings: Name what is opened.
            model: A language model to use instead of what they name; it is never let go.
            embedder: An embedder to use likewise.
        """
        self.settings = settings
        self._model = model
        self._is_given = model is not None
        self._used_at = 0.0
        self._num_reading = 0
        self._embedder = embedder
        self._embedder_is_given = embedder is not None
        self._lock = threading.RLock()

    def close(self) -> None:
        """Gives the language model back."""
        with self._lock:
            if self._model is not None:
                self._model.close()
                self._model = None

    @property
    def is_given(self) -> bool:
        """Whether the model or the embedder was handed in, so that no settings name it."""
        return self._is_given or self._embedder_is_given

    @property
    def model(self) -> LanguageModel:
        """The language model."""
        with self._lock:
            self._used_at = time.monotonic()
            if self._model is None:
                self._model = open_model(self.settings)
            return self._model

    @property
    def embedder(self) -> Embedder:
        """The embedder."""
        with self._lock:
            if self._embedder is None:
                self._embedder = open_embedder(self.settings)
            return self._embedder

    @cached_property
    def pruner(self) -> Pruner | None:
        """The pruner, or None where the settings want none."""
        if self.settings.pruner == "none":
            return None
        pruner: Pruner = make("retrieval.pruners", self.settings.pruner)
        return pruner

    @property
    def usual_budget(self) -> int:
        """Tokens of document text in a prompt that suit the model."""
        return _USUAL_BUDGETS[self.model.ability]

    @property
    def pace(self) -> float:
        """Prompt tokens a second that the model was measured to read here; 0 where it was not."""
        measured = paces(self.settings).get(self.model.name)
        return measured.prompt_tokens_per_s if measured else 0.0

    def use(self, settings: Settings) -> None:
        """Takes other settings from now on; a question that is being answered keeps its model.

        Raises:
            ModelNotFound: they name a model that is not there.
        """
        chosen = choose_model(settings)
        if chosen.kind == "file" and not Path(chosen.where).is_file():
            raise ModelNotFound(f"there is no file {clean(chosen.where)}")
        with self._lock:
            self.settings = settings
            self._model = None
            self._is_given = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While a question is answered, the model is not let go."""
        with self._lock:
            self._num_reading += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_reading -= 1
                self._used_at = time.monotonic()

    def rest(self, idle_s: float) -> bool:
        """Gives the language model's memory back where nobody has asked for so long; see Library.

        Args:
            idle_s: Seconds.

        Returns:
            Whether it was given back now.
        """
        with self._lock:
            if self._model is None or self._is_given or self._num_reading:
                return False
            if time.monotonic() - self._used_at < idle_s:
                return False
            # Not closed: whoever took it from ``model`` may still be at it.
            self._model = None
        gc.collect()
        return True
