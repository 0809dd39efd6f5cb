"""A cluster of Ray's: joined or started, quiet, and given back; Ray Data runs the workers on it."""

import logging
import os
import pickle
import socket
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.batch.errors import ClusterFailed
from app.batch.ray_quiet import quiet_ray, unsaid

if TYPE_CHECKING:
    from app.batch.piece_worker import Errand
    from app.batch.questions import Row

HERE = "local"
"""Instead of a cluster's address: Ray is started on this machine, and ended with the batch."""
_HEAD = "node:__internal_head__"
"""Resource of the one machine without which there is no cluster."""
_REACH_S = 5.0  # Ray itself would knock for minutes
_TRIES = 3
_SHORT = "/tmp" if os.name == "posix" else None  # paths of sockets may have 103 letters
_STORE_BYTES = 128 << 20  # of objects in memory: pieces and answers are small


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines that work together.

    Attributes:
        cpus: Of all of them.
        cpus_of_least: Of the one that has the fewest.
        is_here: Whether they are this machine alone.
        through_client: Whether this process only speaks to the cluster, from outside.
    """

    cpus: int
    cpus_of_least: int
    is_here: bool
    through_client: bool

    def answers(
        self, pieces: Sequence[Sequence["Row"]], errand: "Errand", *, workers: int, cpus: int
    ) -> Generator[Any, None, None]:
        """What the workers say, as they say it, until all pieces are answered or it is closed.

        Args:
            pieces: Each goes to one worker; it goes to another one where that is lost.
            errand: For each worker.
            workers: How many there are.
            cpus: That each of them uses.

        Yields:
            ``Said`` and ``GaveUp``, see ``app.batch.piece_worker``.

        Raises:
            ClusterFailed: the cluster cannot do it.
        """
        import ray

        packed = [pickle.dumps(piece) for piece in pieces]
        try:
            if not self.through_client:
                for said in streamed(packed, errand, workers=workers, cpus=cpus):
                    yield pickle.loads(said)
                return
            # Ray's client cannot stream, so one who stands in the cluster hands on piece by piece.
            there = ray.remote(num_cpus=0, resources={_HEAD: 0.001})(_Relay)
            relay = there.remote(packed, errand, workers, cpus)
            try:
                while (said := ray.get(relay.take.remote())) is not None:
                    yield pickle.loads(said)
            finally:
                ray.kill(relay)
        except ray.exceptions.RayError as error:
            raise ClusterFailed(
                f"the cluster failed: {error}; run the same command again: finished rows are kept"
            ) from error


class _Relay:
    """Runs Ray Data within the cluster for a process outside of it."""

    def __init__(self, pieces: list[bytes], errand: "Errand", workers: int, cpus: int) -> None:
        self._said = streamed(pieces, errand, workers=workers, cpus=cpus)

    def take(self) -> bytes | None:
        """The next thing that a worker says; None at the end."""
        return next(self._said, None)


def streamed(
    pieces: Sequence[bytes], errand: "Errand", *, workers: int, cpus: int
) -> Iterator[bytes]:
    """What workers say, in the order in which they say it; see ``Cluster.answers``."""
    import ray.data

    from app.batch.piece_worker import PieceWorker

    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1  # each answer is sent by itself, as soon as it is there
    context.execution_no_progress_timeout_s = -1  # one answer may take an hour
    context.enable_progress_bars = context.print_on_execution_start = False
    with ray.data.DataContext.current(context):
        answered = ray.data.from_items(
            [{"piece": piece} for piece in pieces], override_num_blocks=len(pieces)
        ).map_batches(
            PieceWorker,
            fn_constructor_args=(errand,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
            # Half of what it uses, so that there is room for the workers of a machine that is lost.
            num_cpus=cpus / 2,
        )
        for block in answered.iter_batches(batch_size=None, prefetch_batches=0):
            yield from block["said"]


@contextmanager
def joined(on: str) -> Iterator[Cluster]:
    """Joins a cluster for as long as the block lasts; one that was joined before stays joined.

    Args:
        on: ``HERE``, "auto" (the cluster that this machine is part of), HOST:PORT of one that it
            is part of, or ray://HOST:PORT of another one.

    Raises:
        MissingExtra: Ray is not installed.
        ClusterFailed: there is no such cluster.
    """
    with quiet_ray(secluded=on == HERE) as ray:
        if ray.is_initialized():
            yield _seen(ray)
            return
        with tempfile.TemporaryDirectory(
            prefix="gistree-", dir=_SHORT, ignore_cleanup_errors=True
        ) as folder:
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            if on == HERE:
                options |= {
                    "include_dashboard": False,
                    "object_store_memory": _STORE_BYTES,
                    "_temp_dir": folder,
                }
            try:
                _reach(on)
                _join(ray, on, options)
            except (OSError, RuntimeError, ValueError) as error:
                raise ClusterFailed(f"there is no cluster of Ray's at {on}: {error}") from error
            try:
                yield _seen(ray)
            finally:
                ray.shutdown()


def _join(ray: Any, on: str, options: dict[str, Any]) -> None:
    """Joins a cluster; a client's port, behind which Ray starts a process each time, may fail."""
    for left in range(_TRIES if on.startswith("ray://") else 1, 0, -1):
        try:
            with unsaid():
                ray.init(on, **options)
            return
        except ConnectionError:
            if left == 1:
                raise


def _reach(on: str) -> None:
    """Whether somebody listens at a cluster's address; raises OSError."""
    host, _, port = on.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_S).close()


def _seen(ray: Any) -> Cluster:
    nodes = [node for node in ray.nodes() if node["Alive"]]
    cpus = [int(node["Resources"].get("CPU", 0)) for node in nodes]
    return Cluster(
        cpus=max(sum(cpus), 1),
        cpus_of_least=max(min((n for n in cpus if n), default=1), 1),
        is_here={node["NodeManagerHostname"] for node in nodes} == {socket.gethostname()},
        through_client=ray.util.client.ray.is_connected(),
    )
