"""What all pages of one server share: the libraries, each opened once, and what answers."""

import hashlib
import threading
from pathlib import Path

from app.engines import Engines
from app.foreman import Foreman
from app.library import Library
from app.settings import Settings, save
from app.uploads import Uploads
from serving.errors import GistreeError


class NobodysSettings(GistreeError):
    """What is everybody's is not changed by one of several people."""


class Service:
    """The library behind a server, opened when it is first asked for, and who does its jobs."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        library: Library | None = None,
        folder: Path | None = None,
        engines: Engines | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            settings: The person's; read from the environment and the settings file where not given.
            library: An open one to serve.
            folder: Of the library, where it is one person's of several.
            engines: What the libraries of several people answer with.
        """
        self.settings = settings or (library.settings if library else Settings())
        self._folder = folder
        self._engines = engines
        self._library = library
        self._foreman: Foreman | None = None
        self._lock = threading.Lock()

    @property
    def library(self) -> Library:
        """The library that the settings name, or this person's; several threads may use it."""
        with self._lock:
            if self._library is None:
                self._library = Library(self._folder, settings=self.settings, engines=self._engines)
            return self._library

    @property
    def uploads(self) -> Uploads:
        """Where files lie that have come for this library."""
        landing = None if self._folder is None else self._folder.parent.parent
        return Uploads(self.library.place.folder, landing=landing)

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
            GistreeError: there is no such model, the settings cannot be kept, or there are
                several people here.
        """
        if self._folder is not None:
            raise NobodysSettings(
                "several people share this model; who runs the server sets it (GISTREE_MODEL)"
            )
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


class Services:
    """The services of a server: one for all, or one for each person who has logged in."""

    def __init__(
        self, settings: Settings | None = None, *, everybodys: Service | None = None
    ) -> None:
        """Opens nothing yet.

        Args:
            settings: The server's; read from the environment and the settings file if not given.
            everybodys: The one for all, where it is there already.
        """
        self.settings = settings or (everybodys.settings if everybodys else Settings())
        self._engines: Engines | None = None
        self._services: dict[Path | None, Service] = {}
        if everybodys is not None:
            self._services[None] = everybodys
        self._lock = threading.Lock()

    @property
    def wants_login(self) -> bool:
        """Whether each person has a library of their own."""
        return bool(self.settings.libraries)

    @property
    def landing(self) -> Uploads:
        """Where files come to before it is known whose they are."""
        if not self.wants_login:
            return self.of("").uploads
        return Uploads(self._root)

    def of(self, person: str) -> Service:
        """The service of a person; of everybody where nobody logs in.

        Args:
            person: What tells them from others, for all time; "" where nobody logs in.

        Raises:
            ValueError: nobody is named, and people log in here.
        """
        if not self.wants_login:
            return self._at(None)
        if not person:
            raise ValueError("each person has a library here, and nobody is named")
        name = hashlib.sha256(person.encode()).hexdigest()[:32]
        return self._at(self._root / "people" / name)

    def work(self) -> None:
        """Has jobs done, those that a crash has interrupted too, whoever ordered them."""
        if not self.wants_login:
            self._at(None).work()
            return
        for folder in sorted((self._root / "people").glob("*/")):
            self._at(folder).work()

    def close(self) -> None:
        """Stops work and gives back the libraries and what answers."""
        with self._lock:
            for each in self._services.values():
                each.close()
            self._services.clear()
            if self._engines is not None:
                self._engines.close()
                self._engines = None

    @property
    def _root(self) -> Path:
        return Path(self.settings.libraries).expanduser()

    def _at(self, folder: Path | None) -> Service:
        with self._lock:
            if folder not in self._services:
                if folder is not None and self._engines is None:
                    self._engines = Engines(self.settings, model=None, embedder=None)
                self._services[folder] = Service(
                    self.settings, folder=folder, engines=None if folder is None else self._engines
                )
            return self._services[folder]


_shared: Services | None = None
_lock = threading.Lock()


def services() -> Services:
    """The services of this process, made when they are first asked for."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Services()
        return _shared


def set_services(new: Services | None) -> None:
    """Puts others in their place, closing the old ones; None: the next who asks makes new ones."""
    global _shared
    with _lock:
        if _shared is not None and _shared is not new:
            _shared.close()
        _shared = new
