"""What all pages of one server share: one library, opened once."""

import threading

from app.foreman import Foreman
from app.library import Library
from app.settings import Settings, save


class Service:
    """The library behind a server, opened when it is first asked for, and who does its jobs."""

    def __init__(self, settings: Settings | None = None, *, library: Library | None = None) -> None:
        """Opens nothing yet.

        Args:
            settings: The person's; read from the environment and the settings file where not given.
            library: An open one to serve.
        """
        self.settings = settings or (library.settings if library else Settings())
        self._library = library
        self._foreman: Foreman | None = None
        self._lock = threading.Lock()

    @property
    def library(self) -> Library:
        """The library that the settings name; several threads may use it at a time."""
        with self._lock:
            if self._library is None:
                self._library = Library(settings=self.settings)
            return self._library

    def work(self) -> None:
        """Has the library's jobs done from now on, those that a crash has interrupted too."""
        library = self.library
        with self._lock:
            if self._foreman is None:
                self._foreman = Foreman(library)
                self._foreman.start()

    def use_model(self, name: str) -> None:
        """Lets another model answer, from now on and after the next start too.

        Args:
            name: As the setting "model" has it.

        Raises:
            GistreeError: there is no such model, or the settings cannot be kept.
        """
        settings = self.settings.model_copy(update={"model": name})
        self.library.use(settings)
        save(model=name)
        self.settings = settings

    def close(self) -> None:
        """Stops work and gives back the library; the next who asks opens it anew."""
        with self._lock:
            if self._foreman is not None:
                self._foreman.stop()
                self._foreman = None
            if self._library is not None:
                self._library.close()
                self._library = None


_shared: Service | None = None
_lock = threading.Lock()


def service() -> Service:
    """The service of this process, made when it is first asked for."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Service()
        return _shared


def set_service(new: Service | None) -> None:
    """Puts another one in its place, closing the old one; None: the next who asks makes one."""
    global _shared
    with _lock:
        if _shared is not None and _shared is not new:
            _shared.close()
        _shared = new
