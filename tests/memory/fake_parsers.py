"""Parsers that behave as bad as parsers can; each is an outside plug-in of its class's name."""

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from memory.blocks import Block, Info, Outline, PageStart, Reading
from memory.document import Problem
from memory.errors import PasswordNeeded
from serving.errors import MissingExtra


def two_of(num_pages):
    yield Info("text/fake", paged=True, num_pages=num_pages)
    yield PageStart("i")
    yield Block("The first page.")
    yield PageStart("ii", "ocr")
    yield Block("The second page.")


def crash():
    ctypes.string_at(0)


class Good:
    def parse(self, path, *, password=None):
        yield from two_of(2)
        yield Block("Its password is " + str(password))
        yield Outline("All of it", 1, 0)
        yield Problem(f"{path.name!r} has a stain", "clean it", 1)


class Slow:
    """Sends its pages late, with signs of life before."""

    def parse(self, path, *, password=None):
        yield Info("text/fake", paged=True, num_pages=2)
        for page in range(2):
            yield Reading(page, "ocr")
            time.sleep(0.6)
        yield from list(two_of(2))[1:]


class KilledByTheSystem:
    def parse(self, path, *, password=None):
        yield from two_of(3)
        os.kill(os.getpid(), signal.SIGKILL)


class Deaf:
    """Closes the pipe and lives on."""

    def parse(self, path, *, password=None):
        yield from two_of(3)
        os.closerange(3, 20)
        time.sleep(600)


class CrashAtOnce:
    def parse(self, path, *, password=None):
        crash()
        yield Info("text/fake")


class CrashOnPage3:
    def parse(self, path, *, password=None):
        yield from two_of(4)
        crash()


class CrashInPage3:
    def parse(self, path, *, password=None):
        yield from two_of(4)
        yield PageStart("iii")
        crash()


class CrashInTheOnlyPage:
    def parse(self, path, *, password=None):
        yield Info("text/fake")
        yield PageStart()
        yield Block("The beginning.")
        crash()


class FailOnPage3:
    def parse(self, path, *, password=None):
        yield from two_of(3)
        raise KeyError("Pages")


class Refuse:
    def parse(self, path, *, password=None):
        yield Info("text/fake")
        yield PageStart()
        yield Block("A cover.")
        raise PasswordNeeded(f"{path.name!r} needs a password")


class NeedExtra:
    def parse(self, path, *, password=None):
        raise MissingExtra("reading it", "llama-index")
        yield


class Hang:
    def parse(self, path, *, password=None):
        yield from two_of(3)
        time.sleep(600)


class Eat:
    def parse(self, path, *, password=None):
        yield from two_of(3)
        eaten = []
        while True:
            eaten.append(bytearray(b"x" * 2**23))
            time.sleep(0.001)


class EatAtOnce:
    def parse(self, path, *, password=None):
        yield from two_of(3)
        bytearray(2**36)


class PagesForEver:
    def parse(self, path, *, password=None):
        while True:
            yield PageStart()


class TextForEver:
    def parse(self, path, *, password=None):
        yield Info("text/fake")
        while True:
            yield Block("and so on " * 1000)


class Chatter:
    """Writes to standard output, from Python and below it."""

    def parse(self, path, *, password=None):
        print("loading")  # noqa: T201  that is the point
        os.write(1, b"Finished {}\n")
        yield from two_of(2)


class Garble:
    """What a file that owns the worker may send."""

    def parse(self, path, *, password=None):
        yield from two_of(3)
        for fd in range(3, 20):
            try:
                os.write(fd, b'Block {"text":"a","kind":"__import__"}\n')
            except OSError:
                continue
        time.sleep(600)


class Surrogates:
    def parse(self, path, *, password=None):
        yield Info("text/fake", title="T\ud800\x00itle")
        yield PageStart("\x00iv")
        yield Block("a\ud800b\x00c\r\nd e\u0301")


class Mischief:
    """Tries what is not allowed and tells what came of it."""

    def parse(self, path, *, password=None):
        yield Info("text/fake")
        yield PageStart()
        outside = path.parent / "outside.txt"
        tries = {
            "connect": lambda: socket.create_connection(("127.0.0.1", int(password)), 5),
            "lookup": lambda: socket.getaddrinfo("localhost", 80),
            "write": lambda: outside.write_text("x"),
            "append": lambda: os.open(outside, os.O_CREAT | os.O_WRONLY),
            "remove": lambda: path.unlink(),
            "rename": lambda: path.rename(outside),
            "symlink": lambda: os.symlink(path, outside),
            "program": lambda: subprocess.run(["true"], check=True),
            "shell": lambda: os.system("true"),
            "fork": lambda: os._exit(0) if os.fork() == 0 else None,
            "escape": lambda: Path("../outside.txt").write_text("x"),
            "own folder": lambda: Path("inside.txt").write_text("x"),
            "temporary": lambda: tempfile.mkstemp(),
        }
        for what, attempt in tries.items():
            try:
                attempt()
                yield Block(f"{what}: done")
            except PermissionError:
                yield Block(f"{what}: refused")
        yield Block(f"secret: {os.environ.get('GISTREE_API_KEY')}")
        interfaces = [name for _, name in socket.if_nameindex()]
        yield Block(f"interfaces: {' '.join(interfaces)}")
        yield Block(f"folder: {os.getcwd()}")
