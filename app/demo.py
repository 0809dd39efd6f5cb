"""``gistree demo``: read the sample book, ask it three questions, say how to go on."""

import os
import sys

from agents.answer import Answer
from agents.steps import Drafting
from app.cli_ui import DEFAULT_HOST, DEFAULT_PORT, PortTaken, check_port, serve
from app.library import open_library
from app.models import ensure_models
from app.sample import QUESTIONS, sample_book
from app.settings import Settings
from app.terminal import err, fetch_bar, out, plain, progress_bars, show_answer

_NEXT = """
Go on with your own documents:

  gistree add FILE_OR_FOLDER        PDF, EPUB, DOCX, ODT, HTML, Markdown, TXT, RTF, scans too
  gistree ui                        the web page: upload, ask, check each answer in the document
  gistree ask "your question"       over all documents, or one: --doc NAME
  gistree search "words"            passages, without a language model
  gistree doctor                    what this machine has, and what would make answers better
"""


def run_demo(place: str | None) -> None:
    """Reads the sample book and answers; the second run reads nothing again."""
    settings = Settings()
    ensure_models(settings, say=lambda line: err.print(plain(line)), bar=fetch_bar)
    with open_library(place, settings=settings) as library:
        with progress_bars() as show, sample_book() as path:
            library.finish_interrupted(on_progress=show)
            book = library.add(path, on_progress=show)
        out.print(
            plain(f"\n{book.title}: {book.num_words:,} words. Three questions about it,", "bold")
        )
        out.print(plain("the last of which the book does not answer.", "bold"))
        for question in QUESTIONS:
            out.print(plain(f"\n? {question}", "bold cyan"))
            for step in library.read(question, documents=[book.id]):
                if isinstance(step, Answer):
                    show_answer(step, several=False)
                elif not isinstance(step, Drafting):
                    err.print(plain(f"  {step}", "dim"))
    out.print(plain(_NEXT))


def open_page(place: str | None) -> None:
    """Serves the web page until it is interrupted; where nobody sits there, says how to."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        out.print(plain("The web page: gistree ui"))
        return
    try:
        check_port(DEFAULT_HOST, DEFAULT_PORT)
    except PortTaken as error:
        out.print(plain(str(error)))
        return
    if place is not None:
        os.environ["GISTREE_LIBRARY"] = place  # the pages read the settings by themselves
    out.print(plain(f"The web page: http://{DEFAULT_HOST}:{DEFAULT_PORT} (Ctrl-C ends it)", "bold"))
    serve(host=DEFAULT_HOST, port=DEFAULT_PORT, open_browser=True)
