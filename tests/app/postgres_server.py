"""A real PostgreSQL server in a folder of its own, which tests may stop and start."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text


def programs() -> Path:
    """Where PostgreSQL's server programs are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and not on_path:
        pytest.skip("PostgreSQL's server programs (initdb, postgres) are not installed")
    return found[-1].parent if found else Path(on_path or "").parent


def somebody() -> dict[str, int]:
    """Options of a process that does not run as root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid}


class PostgresServer:
    """``url`` is without a database's name."""

    def __init__(self) -> None:
        self._programs, self._who = programs(), somebody()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"postgresql://gistree@127.0.0.1:{self._port}"
        self._folder = tempfile.TemporaryDirectory(prefix="gistree-pg-", ignore_cleanup_errors=True)
        self._home = Path(self._folder.name)
        if self._who:
            os.chown(self._home, self._who["user"], self._who["group"])
        make = ["initdb", "-D", "data", "-U", "gistree", "-A", "trust", "--no-sync"]
        options = {"cwd": self._home, "check": True, "capture_output": True, **self._who}
        make[0] = str(self._programs / "initdb")
        subprocess.run([*make, "-E", "UTF8", "--locale=C"], **options)
        self.start()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._programs / "postgres", "-D", self._home / "data"),
                    *("-p", str(self._port)),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=self._home,
                stdout=log,
                stderr=log,
                **self._who,
            )
        ready = [self._programs / "pg_isready", "-h", "127.0.0.1", "-p", str(self._port), "-t", "1"]
        for _ in range(60):
            if subprocess.run(ready, capture_output=True).returncode == 0:
                return
            threading.Event().wait(0.25)
        pytest.fail((self._home / "log").read_text())

    def stop(self) -> None:
        """Ends it, and with it every connection."""
        self._process.send_signal(2)  # "fast": it waits for nobody
        self._process.wait(30)

    def close(self) -> None:
        """Ends it for good."""
        self.stop()
        self._folder.cleanup()

    def say(self, statement: str, database: str = "postgres") -> None:
        """A statement of the administrator's."""
        url = f"{self.url.replace('postgresql', 'postgresql+psycopg')}/{database}"
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def cut(self) -> None:
        """Ends every connection to the database ``books``."""
        self.say("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'books'")

    def empty(self) -> None:
        """Makes the database ``books`` anew."""
        self.say("DROP DATABASE IF EXISTS books WITH (FORCE)")
        self.say("CREATE DATABASE books")
