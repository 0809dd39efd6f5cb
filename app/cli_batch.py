"""``gistree batch``: many questions, unattended."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_options import DocOption, LibraryOption

if TYPE_CHECKING:
    from app.batch.batch import Batch

SOME_FAILED = 3
_EVERY_S = 60.0  # a line in a log, where there is no bar


def batch(
    out: Annotated[str, typer.Option("--out", "-o", help="Answers, likewise.")],
    questions: Annotated[
        str | None,
        typer.Argument(help="Questions: .jsonl, .csv, .parquet or .xlsx; a file or a URL."),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEMA",
            help="In place of questions: a JSON schema of fields, for a table, a row a document.",
        ),
    ] = None,
    library: LibraryOption = None,
    doc: DocOption = None,
    reader: Annotated[str | None, typer.Option(help="Reader, as for `gistree ask`.")] = None,
    budget: Annotated[int | None, typer.Option(help="Tokens of document text a prompt.")] = None,
    each_document: Annotated[
        bool,
        typer.Option("--each-document", help="Ask every question of each document by itself."),
    ] = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Answers in the order of the questions.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Ask the first so many rows only; 0: all.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it takes.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask rows again that failed before.")
    ] = False,
    redo: Annotated[
        bool, typer.Option("--redo", help="Throw away answers made with other settings.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Also write what it came to: a .html or .json file.")
    ] = None,
    at_once: Annotated[
        int,
        typer.Option(min=0, help="Rows at a time (with --on, of each worker); 0: as many as pay."),
    ] = 0,
    on: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER",
            help="Spread over Ray: 'local' for this machine, 'auto', HOST:PORT or ray://HOST:PORT.",
        ),
    ] = "",
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that answer, with --on; 0: as many as fit.")
    ] = 0,
) -> None:
    """Answer a file of questions. Run it again to go on where it was ended."""
    from app.batch.batch import Batch
    from app.batch.remote import at_hand
    from app.batch.report import check_report, write_report
    from app.library import open_library
    from app.terminal import err

    source = questions or fields
    if source is None or (questions and fields):
        raise typer.BadParameter("give a file of questions, or --fields with a schema")
    if report is not None:
        check_report(report)
    with (
        open_library(library) as lib,
        at_hand(source, out, keep=lib.place.batches, redo=redo, dry_run=dry_run) as (asked, to),
        Batch(
            library=lib,
            source=asked,
            out=to,
            documents=tuple(doc) if doc else None,
            reader=reader,
            budget_tokens=budget,
            each_document=each_document,
            fields=fields is not None,
            in_order=in_order,
            limit=limit,
            retry_failed=retry_failed,
            redo=redo,
            dry_run=dry_run,
            most_at_once=at_once,
            on=on,
            workers=workers,
        ) as run,
    ):
        if dry_run:
            _say_estimate(run)
            return
        if run.finished:
            err.print(f"{run.finished:,} of {run.total:,} rows are answered already")
        try:
            _follow(run)
        finally:
            if report is not None:
                write_report(run.report(), report)
        failed = run.failed
    if failed:
        err.print(f"{failed:,} row{'s' * (failed > 1)} failed; ask again with --retry-failed")
        raise typer.Exit(SOME_FAILED)


def _say_estimate(run: "Batch") -> None:
    from app.terminal import out

    sizes = run.estimate()
    about = "about" if sizes.sample else "at most"
    out.print(
        f"{sizes.rows:,} rows, {sizes.calls:,} calls of the model, {about} "
        f"{sizes.prompt_tokens:,} tokens of prompts, about {sizes.completion_tokens:,} of replies"
    )
    if sizes.hours is None:
        out.print("How long that takes is not known: gistree doctor --measure")
    else:
        out.print(f"{about} {sizes.hours:.1f} hours, one row at a time")
    if sizes.sample:
        out.print(f"Reckoned from the {sizes.sample:,} rows that are answered already.")
    elif sizes.rows:
        out.print(
            "Reckoned for the reader oprag with full prompts; others read more. For a closer word "
            "answer some rows with --limit 20, then try this again."
        )


def _follow(run: "Batch") -> None:
    """Shows how far the batch is, until it ends."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
    )

    from app.batch.course import Course
    from app.batch.run import Waiting
    from app.terminal import err, plain

    bars = Progress(
        TextColumn("asking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
        disable=not err.is_terminal,
    )
    course = Course(run.total - run.finished)
    with bars:
        bar = bars.add_task("", total=run.total, completed=run.finished, note="")
        for event in run.run():
            if isinstance(event, Waiting):
                err.print(plain(f"waits {event.seconds:.0f} s: {event.why}"))
                continue
            course.took(event.usage)
            if event.error:
                err.print(plain(f"row {event.row.id}: {event.error}"))
            bars.update(bar, completed=run.finished, note=str(course))
            if bars.disable and course.is_due(_EVERY_S):
                err.print(f"{run.finished:,} of {run.total:,} rows: {course}", soft_wrap=True)
    usage = course.usage
    err.print(
        f"{course.rows:,} rows asked: {usage.prompt_tokens:,} tokens of prompts "
        f"({course.hits:.0%} cached), {usage.completion_tokens:,} of replies"
    )
