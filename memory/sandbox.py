"""What a parse worker must not do: reach the network, start programs, write outside its folder.

Two fences. The kernel's: limits on memory and on the size of a written file, and on Linux a network
namespace without any network, where the system allows one. Python's: audit hooks, which refuse what
libraries do in good faith (a model to fetch, a cache to write). Native code that a hostile file has
taken over does not ask audit hooks; it meets the first fence only, and the parent that kills it.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Any

_NETWORK = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg")
_LOOK_UP = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
_CHANGES = ("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime")
_MOVES = ("os.rename", "os.link", "os.symlink")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG = 1
_MAX_FILE_BYTES = 256 * 2**20


def fence(folder: Path, *, parent: int | None, memory_bytes: int) -> None:
    """Fences in this process, for good.

    Args:
        folder: The only one that it may write in.
        parent: Process id of the parent, with which it dies; the kernel means the thread that
            started this process. None for a worker that outlives that thread: it must see for
            itself that its parent has gone.
        memory_bytes: What its data may take; asking for more fails.
    """
    _limit(memory_bytes)
    if sys.platform == "linux":
        _leave_network()
        if parent is not None:
            _die_with(parent)
    sys.addaudithook(_guard(folder.resolve()))


def _limit(memory_bytes: int) -> None:
    if sys.platform == "win32":
        return  # the parent's watch on the memory is all there is
    import resource

    for kind, most in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),  # no memory image of somebody's document on the disk
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _leave_network() -> None:
    """Moves to a namespace with no network; where that is not allowed, the hook must do."""
    # Only an ordinary user needs a user namespace for that. Root would lose its rights on the files
    # of others in one, and so perhaps the document.
    namespaces = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    ctypes.CDLL(None).unshare(namespaces)


def _die_with(parent: int) -> None:
    """Has the kernel end this process with its parent, even one that was killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(1)


def _guard(folder: Path) -> Any:
    inside = str(folder) + os.sep

    def may_write(path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return True  # already open
        real = os.path.realpath(os.fsdecode(path))
        return real == os.devnull or (real + os.sep).startswith(inside)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if flags & _WRITES and not may_write(path):
                raise PermissionError(f"a parser may not write {path!r}")
        elif event in _NETWORK:
            raise PermissionError(f"a parser may not use the network ({args[1:]!r})")
        elif event in _LOOK_UP:
            raise PermissionError(f"a parser may not use the network ({args[:1]!r})")
        elif event in _PROGRAMS:
            raise PermissionError(f"a parser may not start a program ({args[:1]!r})")
        elif (event in _CHANGES and not may_write(args[0])) or (
            event in _MOVES and not (may_write(args[0]) and may_write(args[1]))
        ):
            raise PermissionError(f"a parser may not change {args[:2]!r}")

    return hook
