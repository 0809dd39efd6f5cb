"""A batch spread over the workers of a cluster; each answer comes back to the one journal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from app.batch.errors import ClusterFailed
from app.batch.journal import Journal
from app.batch.piece_worker import Errand, GaveUp, Said
from app.batch.pieces import pieces, room
from app.batch.plan import WINDOW, about, planned
from app.batch.questions import Row
from app.batch.ray_cluster import Cluster, joined
from app.batch.run import Event, RowDone, Terms
from app.library import Library
from app.models import ChosenModel, choose_model

_OF_A_MACHINE = ("models", "threads", "keep_model_s", "vectors_in_memory", "library")
"""Settings that another machine has its own of."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True)
class Spread:
    """Has rows answered on a cluster and keeps each answer, as ``Runner`` does in this process.

    Attributes:
        library: Whose documents are asked; each worker opens it for itself.
        journal: Where answers are kept.
        terms: How rows are asked.
        on: The cluster, see ``joined``.
        workers: Processes that answer; 0 takes as many as the cluster has processors for.
        most_at_once: Rows that each of them asks at a time; 0 finds it by measuring.
        join: Joins the cluster.
    """

    library: Library
    journal: Journal
    terms: Terms
    on: str
    workers: int = 0
    most_at_once: int = 0
    join: Callable[[str], AbstractContextManager[Cluster]] = joined

    def run(self, rows: Iterable[Row]) -> Iterator[Event]:
        """Answers the rows that the journal does not have. Closing the iterator stops the work.

        Raises:
            ClusterFailed: there is no such cluster, or it or a worker cannot go on.
            StorageFull: the answers cannot be kept; those before are.
        """
        ordered = planned((r for r in rows if r.number not in self.journal.status), about)
        first = next(ordered, None)
        if first is None:
            return
        ordered = chain([first], ordered)
        if self.library.engines.is_given:
            raise ClusterFailed(
                "this library was opened with a model or an embedder of its own, which cannot be "
                "taken to other processes; name them in the settings"
            )
        chosen = choose_model(self.library.settings)
        self.library.rest(0)  # this process answers nothing itself
        with self.join(self.on) as cluster:
            cpus = cluster.cpus_of_least if chosen.kind == "file" else 1
            errand = self._errand(cluster, chosen, cpus)
            workers = self.workers or max(cluster.cpus // cpus, 1)
            while part := list(islice(ordered, WINDOW)):
                yield from self._all(part, cluster, errand, workers=workers, cpus=cpus)

    def _all(
        self, rows: Sequence[Row], cluster: Cluster, errand: Errand, *, workers: int, cpus: int
    ) -> Iterator[Event]:
        """Has rows answered, until the journal has every one.

        Where a worker is lost, Ray drops as many answers of the one in its place as had come from
        it. They may be to other rows than those, which are asked again then.
        """
        while rows:
            cut = list(pieces(rows, room=room(len(rows), workers)))
            most = min(workers, len(cut))
            with closing(cluster.answers(cut, errand, workers=most, cpus=cpus)) as said:
                yield from self._kept(said)
            left = [row for row in rows if row.number not in self.journal.status]
            if len(left) == len(rows):
                raise ClusterFailed(
                    f"the cluster has ended without an answer to {len(left):,} rows; run the same "
                    "command again: finished rows are kept"
                )
            rows = left

    def _kept(self, said: Iterable[Said | GaveUp]) -> Iterator[Event]:
        for one in said:
            if isinstance(one, GaveUp):
                raise ClusterFailed(one.why)
            if isinstance(one.event, RowDone) and one.line is not None:
                if one.event.row.number in self.journal.status:
                    continue  # its worker was lost after it; another one did it again
                self.journal.add(one.line)
            yield one.event

    def _errand(self, cluster: Cluster, chosen: ChosenModel, cpus: int) -> Errand:
        """What workers are told.

        Raises:
            ClusterFailed: they could not reach the library or the model.
        """
        library = self.library
        if not cluster.is_here:
            at = library.place.url
            if at.get_backend_name() == "sqlite" or at.host in _LOOPBACK:
                raise ClusterFailed(
                    f"{library.place} lies on this machine, and the workers do not; keep the "
                    "library in PostgreSQL, by an address that all of them reach: "
                    "--library postgresql://HOST/NAME"
                )
            if chosen.kind == "server" and urlsplit(chosen.where).hostname in _LOOPBACK:
                raise ClusterFailed(
                    f"{chosen.where} is another server on each machine of the cluster; name the "
                    "model's server as all of them reach it: GISTREE_MODEL=http://HOST:8000"
                )
        settings: dict[str, Any] = library.settings.model_dump(exclude=set(_OF_A_MACHINE))
        settings["model"] = named(chosen)
        settings["threads"] = cpus
        if cluster.is_here:
            settings["models"] = library.settings.models
        return Errand(library.place.address, settings, self.terms, self.most_at_once, uuid4().hex)


def named(chosen: ChosenModel) -> str:
    """A model as a setting that says the same in another process, on another machine."""
    if chosen.kind == "server":
        return f"{chosen.where}#{chosen.name}" if chosen.name else chosen.where
    if chosen.kind == "vllm":
        return f"vllm:{chosen.card.name if chosen.card else chosen.where}"
    if chosen.kind == "langchain":
        return chosen.name
    # Of a mere file nobody would know there what it is able to.
    return chosen.card.name if chosen.card else chosen.where
