"""A batch whose questions or answers lie elsewhere: it works on copies here, answers are sent."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.batch.errors import BadQuestions, OutputNotWritable
from app.elsewhere import NotReached, fetch, is_there, is_url, name_of, send, shown


@contextmanager
def at_hand(
    source: str | Path, out: str | Path, *, keep: Path, redo: bool = False, dry_run: bool = False
) -> Iterator[tuple[Path, Path]]:
    """The question and the answer file on this machine, for as long as the block lasts.

    Answers that belong elsewhere are made here, and stay, so that nothing is lost on the way and
    the same batch goes on from them; they are sent at the end of the block, however it ends.

    Args:
        source: The questions: a path or a URL.
        out: The answers, likewise.
        keep: Folder for the copies.
        redo: An answer file that another machine has written may be replaced.
        dry_run: Send nothing.

    Raises:
        BadQuestions: the questions cannot be fetched.
        OutputNotWritable: the answers cannot be sent, or another machine's are there.
        MissingExtra: the driver for such addresses is not installed.
    """
    questions, answers = _here(source, keep), _here(out, keep)
    if isinstance(source, str) and is_url(source):
        try:
            fetch(source, questions)
        except NotReached as error:
            raise BadQuestions(str(error)) from error
    if not (isinstance(out, str) and is_url(out)):
        yield questions, answers
        return
    try:
        begun_here = any(answers.parent.glob(f"{answers.name}*"))
        foreign = not begun_here and not redo and is_there(out)
    except NotReached as error:
        raise OutputNotWritable(str(error)) from error
    if foreign:
        raise OutputNotWritable(
            f"{shown(out)} is there already, and was not begun on this machine; choose another "
            "output, or replace it with --redo"
        )
    try:
        yield questions, answers
    finally:
        if answers.exists() and not dry_run:
            try:
                send(answers, out)
            except NotReached as error:
                raise OutputNotWritable(
                    f"{error}; the answers are kept in {answers}, and the same command sends them"
                ) from error


def _here(name: str | Path, keep: Path) -> Path:
    """Where a file lies on this machine; of a URL, in a folder of its own."""
    if not (isinstance(name, str) and is_url(name)):
        return Path(name)
    folder = keep / hashlib.sha256(name.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name_of(name)
