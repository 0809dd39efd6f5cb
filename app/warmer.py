"""Reading ahead what the next question's prompt begins with, while the person types."""

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from serving.errors import GistreeError

if TYPE_CHECKING:
    from app.library import Library

log = logging.getLogger(__name__)

Wanted = tuple[tuple[str, ...] | None, str, int | None]
"""Documents (all where None), reader, budget in tokens (what suits the model where None)."""


@dataclass(slots=True)
class Warmer:
    """One thread for a library. Of what is wanted while it reads, the latest is read next."""

    library: "Library"
    _last: Wanted | None = None
    _next: Wanted | None = None
    _works: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, documents: tuple[str, ...] | None, reader: str, budget: int | None) -> None:
        """Has that read ahead, unless it was the last; returns at once."""
        wanted = (documents, reader, budget)
        with self._lock:
            if wanted == self._last:
                return
            self._last = self._next = wanted
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="warmer", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                wanted, self._next = self._next, None
                if wanted is None:
                    self._works = False
                    return
            if not self._read_ahead(wanted):
                with self._lock:
                    self._last = None  # the same may be tried again

    def _read_ahead(self, wanted: Wanted) -> bool:
        documents, reader, budget = wanted
        try:
            usage = self.library.warm(documents=documents, reader=reader, budget_tokens=budget)
        except GistreeError as error:  # the question itself will say it to the person
            log.info("not read ahead: %s", error)
            return False
        except Exception:  # of ours, or of a library's: nobody waits for this, so the log has it
            log.exception("not read ahead")
            return False
        log.info("read ahead", extra={"tokens": usage.prompt_tokens})
        return True
