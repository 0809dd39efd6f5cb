"""The process that does jobs, one after the other, as its foreman hands them over.

Started by ``app.foreman`` only. It may be killed at any moment: that is how a job is paused or
cancelled, and what a crash looks like, and nothing is left half done.
"""

import json
import os
import queue
import sys
import threading
from typing import Any, TypedDict

from app.job_run import run_job
from app.library import Library
from app.logs import log_file, set_up
from app.settings import Settings

_LESS_URGENT = 5  # than answering and turning pages


class Order(TypedDict):
    """One line of standard input."""

    job: str
    owner: str
    secret: str


def main(place: str, settings: dict[str, Any]) -> None:
    """Does jobs until standard input ends.

    Args:
        place: The library's folder or URL.
        settings: To open it with, by name.
    """
    set_up(file=log_file())
    if hasattr(os, "nice"):
        os.nice(_LESS_URGENT)
    # What libraries print goes to standard error; standard output is the foreman's alone.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(orders,), daemon=True).start()
        with Library(place, settings=Settings(**settings)) as library:
            while True:
                order = orders.get()
                job = library.jobs.get(order["job"])
                if job is not None and job.owner == order["owner"] and job.state == "running":
                    run_job(library, job, owner=order["owner"], secret=order["secret"])
                out.write("idle\n")
                out.flush()


def _listen(orders: "queue.SimpleQueue[Order]") -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    os._exit(0)  # the foreman has gone, or needs this process no more
