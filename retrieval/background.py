"""One thread for the heavy work of indexes: learning cells, writing to the disk."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache


def begun(work: Callable[[], None]) -> "Future[None]":
    """Has work done after what was begun before it, beside whatever else goes on.

    One thread does it for all indexes of this process: two would be in each other's way, and each
    new thread keeps 30 MB in the libraries of linear algebra that it calls, also when it has ended.
    """
    return _thread().submit(work)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "gistree-index")
