"""The command line.

Exit codes: 0 done; 1 failed, with the reason on standard error; 2 misused; 3 some of the files
could not be added; 130 interrupted.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_batch import batch
from app.cli_care import backup, check, restore
from app.cli_mcp import mcp
from app.cli_memory import memory
from app.cli_models import models
from app.cli_options import DocOption, JsonOption, LibraryOption, print_json
from app.cli_serve import serve
from app.cli_ui import ui
from app.cli_watch import watch
from app.interrupts import repeat_dropped_interrupts
from serving.errors import GistreeError

if TYPE_CHECKING:
    from app.library import Library

app = typer.Typer(
    name="gistree",
    help="Reads documents too long for a model's window and answers with citations that hold.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models, name="models")
app.command()(batch)
app.command()(check)
app.command()(backup)
app.command()(restore)
app.command()(memory)
app.command()(ui)
app.command()(mcp)
app.command()(serve)
app.command()(watch)

SOME_FAILED = 3
_MOST_SHOWN = 50
INTERRUPTED = 130


@app.callback()
def _options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens.")] = False,
) -> None:
    from app.logs import log_file, set_up

    set_up(verbose=verbose, file=log_file())


def _open(library: str | None, *, read_only: bool = False) -> "Library":
    from app.library import open_library

    return open_library(library, read_only=read_only)


@app.command()
def add(
    paths: Annotated[
        list[str], typer.Argument(help="Files, folders, patterns (quoted), or their URLs.")
    ],
    library: LibraryOption = None,
    password: Annotated[str | None, typer.Option(help="For encrypted files.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Put on each. May be repeated.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Files read at a time.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Add documents. What is in the library already is not read again."""
    from app.bulk import expanded
    from app.elsewhere import is_url
    from app.library import Failure
    from app.present import entry_json, problem_json
    from app.remote_documents import add_from
    from app.terminal import err, out, plain, progress_bars, show_entry
    from memory.errors import DocumentError
    from memory.store import Entry

    added: list[Entry] = []
    failed: list[Failure] = []
    with _open(library) as lib:
        with progress_bars() as show:
            lib.finish_interrupted(on_progress=show)
            files: list[Path] = []
            for path in paths:
                if is_url(path):
                    more, less = add_from(
                        lib, path, password=password, tags=tag or (), on_progress=show
                    )
                    added += more
                    failed += less
                    continue
                try:
                    found, unread = expanded(path, but=lib.place.folder)
                except DocumentError as error:
                    failed.append(Failure(Path(path), error))
                else:
                    files += found
                    failed += [Failure(where, why) for where, why in unread]
            several = lib.add_many(
                files, password=password, tags=tag or (), workers=workers, on_progress=show
            )
            ended = dict(several)
            for file, what in ((file, ended[file]) for file in files):
                if isinstance(what, Entry):
                    added.append(what)
                else:
                    failed.append(Failure(file, what))
        problems = {entry.id: lib.problems(entry.id) for entry in added}
    if as_json:
        print_json(
            {
                "added": [
                    entry_json(e) | {"problems": [problem_json(p) for p in problems[e.id]]}
                    for e in added
                ],
                "failed": [{"path": str(f.path), "error": str(f.error)} for f in failed],
            }
        )
    else:
        for entry in added if len(added) <= _MOST_SHOWN else ():
            show_entry(entry, problems[entry.id])
        if len(added) > _MOST_SHOWN:
            partly = sum(map(bool, problems.values()))
            out.print(f"{len(added):,} documents are in; {partly:,} of them could be read in part")
        for failure in failed:
            err.print(plain(f"not added: {failure.error}", "red"), soft_wrap=True)
    if failed:
        raise typer.Exit(SOME_FAILED if added else 1)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to find out.")],
    library: LibraryOption = None,
    doc: DocOption = None,
    reader: Annotated[str | None, typer.Option(help="How to read.")] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of document text in a prompt.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; the answer comes with quotes and their places."""
    from agents.answer import Answer
    from agents.steps import Drafting
    from app.present import answer_json
    from app.terminal import err, out, plain, progress_bars, show_answer
    from serving.plugins import make

    if reader is not None:
        make("agents.readers", reader)  # says what is wrong with it before anything is loaded
    _offer_model()
    with _open(library) as lib:
        if not lib.read_only:
            with progress_bars() as show:
                lib.finish_interrupted(on_progress=show)
        several = len(doc or lib.list()) > 1
        for step in lib.read(question, documents=doc, reader=reader, budget_tokens=budget):
            if isinstance(step, Answer):
                if as_json:
                    print_json(answer_json(question, step))
                else:
                    show_answer(step, several=several)
            elif not isinstance(step, Drafting) and not as_json and out.is_terminal:
                err.print(plain(f"  {step}", "dim"))


def _offer_model() -> None:
    """Where there is no language model and a person is there to ask, offers to fetch one."""
    from app.models import choose_model, ensure_models
    from app.settings import Settings
    from app.terminal import err, fetch_bar, plain
    from serving.catalogue import card, default_llm
    from serving.errors import ModelNotFound

    settings = Settings()
    if settings.model != "auto" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    try:
        choose_model(settings)
    except ModelNotFound:
        model = card(default_llm())
        if typer.confirm(f"Fetch {model.title} ({model.size_bytes / 1e9:.1f} GB)?", err=True):
            ensure_models(settings, say=lambda line: err.print(plain(line)), bar=fetch_bar)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    library: LibraryOption = None,
    doc: DocOption = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=1000)] = 5,
    as_json: JsonOption = False,
) -> None:
    """Find passages, without a language model."""
    from app.present import citation_json
    from app.terminal import show_citations

    with _open(library) as lib:
        found = lib.search(query, documents=doc, top_k=top_k)
    if as_json:
        print_json({"query": query, "passages": [citation_json(c) for c in found]})
    else:
        show_citations(found, several=True)


@app.command("list")
def list_documents(
    library: LibraryOption = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents."""
    from app.present import entry_json
    from app.terminal import out, show_list

    with _open(library) as lib:
        entries = lib.list(tag=tag)
    if as_json:
        print_json({"documents": [entry_json(e) for e in entries]})
    elif entries:
        show_list(entries)
    else:
        out.print("The library is empty. Add a document: gistree add FILE")


@app.command()
def show(
    document: Annotated[str, typer.Argument(help="Id, name or title.")],
    library: LibraryOption = None,
    text: Annotated[bool, typer.Option("--text", help="Print its whole text.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a document: pages read, sections, what could not be read."""
    from app.present import entry_json, problem_json
    from app.terminal import out, plain, show_entry

    with _open(library) as lib:
        entry, whole = lib.show(document), lib.document(document)
    if as_json:
        print_json(
            entry_json(entry)
            | {
                "problems": [problem_json(p) for p in whole.problems],
                "sections": [
                    {"title": s.title, "level": s.level, "start": s.span.start, "end": s.span.end}
                    for s in whole.sections
                ],
            }
            | ({"text": whole.text} if text else {})
        )
        return
    if text:
        sys.stdout.write(whole.text + "\n")
        return
    show_entry(entry, whole.problems)
    for section in whole.sections:
        out.print(plain("  " * section.level + section.title))


@app.command()
def rename(
    document: Annotated[str, typer.Argument(help="Id, name or title.")],
    title: Annotated[str, typer.Argument(help="Its new title.")],
    library: LibraryOption = None,
) -> None:
    """Give a document another title."""
    from app.terminal import show_entry

    with _open(library) as lib:
        show_entry(lib.rename(document, title))


@app.command()
def tag(
    document: Annotated[str, typer.Argument(help="Id, name or title.")],
    tags: Annotated[list[str] | None, typer.Argument(help="Its tags; none takes all away.")] = None,
    library: LibraryOption = None,
) -> None:
    """Set a document's tags."""
    from app.terminal import show_entry

    with _open(library) as lib:
        show_entry(lib.tag(document, *(tags or ())))


@app.command()
def delete(
    documents: Annotated[list[str], typer.Argument(help="Ids, names or titles.")],
    library: LibraryOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete documents and everything made of them."""
    from app.terminal import out, plain

    with _open(library) as lib:
        entries = [lib.show(document, exact=yes) for document in documents]
        for entry in entries:
            if yes or typer.confirm(f"Delete {entry.title}?"):
                lib.delete(entry.id)
                out.print(plain(f"deleted {entry.title}"))


@app.command()
def demo(
    library: LibraryOption = None,
    page: Annotated[
        bool, typer.Option("--page", help="Then open the web page, where a person is there.")
    ] = False,
) -> None:
    """Read the sample book and answer three questions about it."""
    from app.demo import open_page, run_demo

    run_demo(library)
    if page:
        open_page(library)


@app.command()
def doctor(
    measure: Annotated[bool, typer.Option(help="Measure how fast the model reads.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Say what this machine has, how fast it reads, and what would make answers better."""
    from dataclasses import asdict

    from app.doctor import examine
    from app.settings import Settings
    from app.terminal import out, plain

    findings = examine(Settings(), measure=measure)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
        return
    for finding in findings:
        out.print(plain(f"{finding.what:>28}  {finding.value}"))
        if finding.advice:
            out.print(plain(f"{'':>28}  → {finding.advice}", "yellow"))


def main() -> None:
    """Runs the command line; failures that gistree explains become one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files may hold bytes that are no UTF-8; they must not end the program.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    repeat_dropped_interrupts()
    try:
        app()
    except (GistreeError, OSError, ValueError) as error:
        from memory.characters import clean

        sys.stderr.write(clean(f"gistree: {error}\n"))  # it may quote a document or a file name
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as stop:  # Typer turns the one into the other
        code = INTERRUPTED if isinstance(stop, KeyboardInterrupt) else stop.code
        if code == INTERRUPTED:
            sys.stderr.write("\ninterrupted; what was finished is kept\n")
        sys.exit(code)


if __name__ == "__main__":
    main()
