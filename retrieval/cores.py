"""How many CPU cores there are for us."""

import os


def usable_cores() -> int:
    """Cores that this process may run on; containers and ``taskset`` give fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
