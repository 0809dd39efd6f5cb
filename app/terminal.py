"""What the command line shows: answers, lists and progress bars.

Document and model text is printed as it is: never as markup, and without control characters.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from agents.answer import Answer, Citation
from app.progress import OnProgress, Progress
from memory.characters import clean
from memory.document import Problem
from memory.store import Entry
from serving.catalogue import ModelCard

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_STAGES = {
    "copy": "copying",
    "read": "reading",
    "embed": "indexing",
    "wait": "waiting for another process",
    "fetch": "fetching",
    "ask": "asking",
    "done": "done",
}


def plain(text: str, style: str = "") -> Text:
    """Foreign text, safe for a terminal."""
    return Text(clean(text), style=style)


@contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """A bar for each document at work; nothing where the output is not a terminal."""
    if not sys.stderr.isatty():
        yield _LineProgress()
        return
    bars = Bars(
        TextColumn("{task.fields[stage]}"),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    with bars:

        def show(progress: Progress) -> None:
            if progress.stage == "done":
                if progress.name in tasks:
                    bars.remove_task(tasks.pop(progress.name))
                return
            if progress.name not in tasks:
                tasks[progress.name] = bars.add_task(
                    plain(progress.name[:40]).markup, total=None, stage=""
                )
            bars.update(
                tasks[progress.name],
                completed=progress.done,
                total=progress.total or None,
                stage=_STAGES[progress.stage],
            )

        yield show


class _LineProgress:
    """A line whenever another part of the work begins, for logs."""

    def __init__(self) -> None:
        self._last: tuple[str, str] = ("", "")

    def __call__(self, progress: Progress) -> None:
        if progress.stage != "done" and (progress.name, progress.stage) != self._last:
            self._last = (progress.name, progress.stage)
            err.print(plain(f"{_STAGES[progress.stage]} {progress.name} …"))


@contextmanager
def fetch_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of bytes for a model that is fetched."""
    bar = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task(f"fetching {name}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_models(cards: Sequence[ModelCard], folder: Path, used: Collection[str]) -> None:
    """The catalogue as a table."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "name", "for", "size", "window", "licence", "note"):
        right = column in ("size", "window")
        table.add_column(column, justify="right" if right else "left", no_wrap=column != "note")
    for card in cards:
        mark = "✓ used" if card.name in used and card.is_in(folder) else ""
        mark = mark or ("✓" if card.is_in(folder) else "")
        table.add_row(
            mark,
            card.name,
            card.ability if card.kind == "llm" else card.kind,
            f"{card.size_bytes / 1e9:.2f} GB",
            f"{card.window:,}",
            card.licence,
            card.note,
        )
    out.print(table)


def show_entry(entry: Entry, problems: Sequence[Problem] = ()) -> None:
    """A document in a few lines, with what could not be read."""
    out.print(plain(entry.title, "bold"))
    unit = "pages" if entry.paged else "parts"
    out.print(
        plain(
            f"  {entry.id[:12]}  {entry.name}  {entry.num_words:,} words, "
            f"{entry.pages_read:,} of {entry.num_pages:,} {unit} read"
            + (f"  tags: {', '.join(entry.tags)}" if entry.tags else "")
        )
    )
    for problem in problems:
        where = f"page {problem.page + 1}: " if problem.page is not None else ""
        out.print(plain(f"  ! {where}{problem.what} — {problem.remedy}", "yellow"))


def show_list(entries: Sequence[Entry]) -> None:
    """The documents as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("title", overflow="fold")
    table.add_column("words", justify="right")
    table.add_column("read", justify="right")
    table.add_column("tags", overflow="fold")
    for e in entries:
        table.add_row(
            e.id[:8],
            plain(e.title),
            f"{e.num_words:,}",
            f"{e.pages_read:,}/{e.num_pages:,}",
            plain(", ".join(e.tags)),
        )
    out.print(table)


def show_citations(citations: Sequence[Citation], *, several: bool) -> None:
    """Quotes with their places."""
    for number, citation in enumerate(citations, 1):
        where = f"{citation.title}, {citation.place}" if several else citation.place
        out.print(Text.assemble((f"  [{number}] ", "cyan"), plain(where, "cyan")))
        quote = " ".join(citation.quote.split())
        out.print(Padding(plain(f"“{quote}”"), (0, 0, 0, 6)))


def show_answer(answer: Answer, *, several: bool) -> None:
    """An answer, what bears it out, and what it cost."""
    out.print()
    out.print(plain(answer.text, "bold" if answer.found else "bold yellow"))
    for sentence in answer.unsupported:
        out.print(plain(f"  ! nothing found that bears this out: {sentence}", "yellow"))
    if answer.nearest:
        out.print("  The nearest passages:")
    show_citations(answer.citations or answer.nearest, several=several)
    usage = answer.usage
    cached = f" ({usage.cached_share:.0%} of them cached)" if usage.cached_tokens else ""
    out.print(
        plain(
            f"  {answer.reader}, {answer.model}: {usage.prompt_tokens:,} tokens read{cached}, "
            f"{usage.completion_tokens:,} written, {answer.seconds:.1f} s",
            "dim",
        )
    )
