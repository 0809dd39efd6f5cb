"""A batch: a question file in, an answer file out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.batch.estimate import Estimate, Means, estimate
from app.batch.journal import Journal
from app.batch.output import check_output, journal_path, write_output
from app.batch.questions import Row, Survey, questions, survey
from app.batch.report import Report, summed
from app.batch.run import Event, Runner, Terms
from app.batch.settings import agree, differences
from app.batch.table import Table, cells, read_fields
from app.batch.templates import each_document
from app.batch.throttle import throttle_for
from app.library import Library
from app.models import paces
from serving.plugins import make

if TYPE_CHECKING:
    from app.batch.spread import Spread

_CONFIRMED = 2  # calls of one answer of a small model: the draft, and whether it stands


@dataclass(slots=True)
class Batch:
    """A run over a question file. Use it in a ``with`` block, or close it.

    Nothing that is finished is lost or done twice: each answer is on the disk before it is
    counted, and the same batch, opened again, goes on where it was ended, however that was.

    Attributes:
        library: Whose documents are asked.
        source: The question file: .jsonl, .csv, .parquet or .xlsx, with the column "question", and
            if it likes "id", "document" or "documents", "reader", "budget_tokens"; or, for a table,
            the JSON schema of its fields.
        out: The answer file: .jsonl, .csv or .parquet.
        documents: Ids, names or titles that rows without documents of their own ask; None asks
            all of the library.
        reader: Of rows that name none; None takes the settings' one.
        budget_tokens: Of rows that have none; None takes the usual one.
        each_document: Every question is asked of each document by itself.
        fields: The source is a schema; the output is a table, one row a document.
        in_order: Answers stand in the order of the questions; else as they were finished.
        limit: Ask the first so many rows only (of a table, documents); 0 asks all.
        retry_failed: Rows that failed before are asked again.
        redo: Answers made with other settings are thrown away; else that is an error. Those made
            with the same ones stay.
        dry_run: Only for ``estimate``: nothing is written.
        most_at_once: Rows that are asked at a time; 0 finds it by measuring. On a cluster it is
            each worker's.
        on: A cluster to be asked on, see ``app.batch.ray_cluster.joined``; else in this process.
        workers: Processes that answer there; 0 takes as many as there is room for.
    """

    library: Library
    source: Path
    out: Path
    documents: tuple[str, ...] | None = None
    reader: str | None = None
    budget_tokens: int | None = None
    each_document: bool = False
    fields: bool = False
    in_order: bool = False
    limit: int = 0
    retry_failed: bool = False
    redo: bool = False
    dry_run: bool = False
    most_at_once: int = 0
    on: str = ""
    workers: int = 0
    _survey: Survey = field(init=False)
    _journal: Journal = field(init=False)
    _keys: tuple[str, ...] = field(init=False)
    _num_rows: int = field(init=False)
    _table: Table | None = field(init=False)

    def __post_init__(self) -> None:
        """Looks through the questions and opens the output.

        Raises:
            BatchError: the questions cannot be used, the output cannot be written, or it was made
                with other settings.
            UnknownName: no such reader.
        """
        check_output(self.out)
        make("agents.readers", self.reader or self.library.settings.reader)
        named = map(self.library.show, self.documents) if self.documents else self.library.list()
        titles = {entry.id: entry.title for entry in named}
        self._keys = tuple(titles)
        self._table = None
        if self.fields:
            fields, self._survey = read_fields(self.source)
            self._table = Table(fields, titles)
        else:
            self._survey = survey(self.source)
        counted = self.each_document or self.fields
        self._num_rows = sum(1 for _ in self._every_row()) if counted else self._survey.rows
        kept = journal_path(self.out, as_it_comes=not (self.in_order or self.fields))
        # It refuses a file that is no answer file, before --redo, too.
        self._journal = Journal(kept, dry=self.dry_run)
        try:
            settings = self._settings()
            if self.redo and differences(self.out, settings):
                self._journal.clear()
            failed = self.failed if self.retry_failed else 0
            agree(self.out, settings, finished=self.finished - failed, dry=self.dry_run)
            if failed:
                self._journal.forget("error")
        except BaseException:
            self._journal.close()
            raise

    def _settings(self) -> dict[str, Any]:
        return {
            "questions": self._survey.digest,
            "reader": self.reader or self.library.settings.reader,
            "budget_tokens": self.budget_tokens or self.library.settings.budget_tokens,
            "documents": sorted(self._keys) if self._of_each else "all",
            "each_document": self.each_document,
            "fields": self.fields,
            "model": self.library.model.name,
            "embedder": self.library.settings.embedder,
            "pruner": self.library.settings.pruner,
            "reranker": self.library.settings.reranker,
        }

    @property
    def _of_each(self) -> bool:
        """Whether it matters for the numbers of rows which documents there are."""
        return bool(self.documents) or self.each_document or self.fields

    def __enter__(self) -> "Batch":
        """The batch itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Gives the output back."""
        self._journal.close()

    @property
    def total(self) -> int:
        """Rows of this run (of a table, cells), finished ones included."""
        return min(self._limit, self._num_rows) if self.limit else self._num_rows

    @property
    def _limit(self) -> int:
        return self.limit * (len(self._table.fields) if self._table else 1)

    @property
    def finished(self) -> int:
        """Rows that are kept."""
        return len(self._journal.status)

    @property
    def failed(self) -> int:
        """Rows for which no answer could be made."""
        return self._journal.status.count("error")

    def estimate(self) -> Estimate:
        """What the rows that are left will take."""
        library = self.library
        pace = paces(library.settings).get(library.model.name)
        means = Means(
            budget_tokens=self.budget_tokens or library.usual_budget,
            calls=_CONFIRMED if library.model.ability == "small" else 1,
            values=int(self.fields),
            prompt_tokens_per_s=pace.prompt_tokens_per_s if pace else 0.0,
            completion_tokens_per_s=pace.completion_tokens_per_s if pace else 0.0,
        )
        left = (row for row in self._rows() if row.number not in self._journal.status)
        return estimate(left, means, self.report())

    def report(self) -> Report:
        """What the rows that are kept came to."""
        return summed(self._journal.rows(), total=self.total, settings=self._settings())

    def run(self) -> Iterator[Event]:
        """Answers the rows that are left. Closing the iterator stops the work.

        The answer file is whole at the end, and also where the run is stopped.
        """
        try:
            yield from self._runner().run(self._rows())
        finally:
            write_output(self._journal, self.out, in_order=self.in_order, table=self._table)

    def _runner(self) -> "Runner | Spread":
        terms = Terms(self.documents, self.reader, self.budget_tokens)
        if not self.on:
            throttle = throttle_for(self.library.model, self.most_at_once)
            return Runner(self.library, self._journal, terms, throttle)
        from app.batch.spread import Spread

        return Spread(
            library=self.library,
            journal=self._journal,
            terms=terms,
            on=self.on,
            workers=self.workers,
            most_at_once=self.most_at_once,
        )

    def _rows(self) -> Iterator[Row]:
        for row in self._every_row():
            if self.limit and row.number >= self._limit:
                return
            yield row

    def _every_row(self) -> Iterator[Row]:
        if self._table is not None:
            return cells(self._table.fields, self._keys)
        rows = questions(self.source)
        if not self.each_document:
            return rows
        return each_document(rows, self._keys, lambda name: self.library.show(name, exact=True).id)
