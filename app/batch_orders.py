"""Batches that were ordered in the background: their files within the library, their answers."""

import json
import shutil
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.batch.journal import Journal
from app.batch.output import write_output
from app.batch.questions import survey
from app.library import Library
from app.task import unpacked
from app.uploads import Upload, Uploads
from memory.job_book import Job
from serving.errors import GistreeError

QUESTION_FILES = ("jsonl", "csv", "parquet", "xlsx")
ANSWER_FILES = ("jsonl", "csv", "parquet")


def batch_folder(library: Library, batch: str) -> Path:
    """Where the files of a batch lie."""
    return library.place.batches / batch


def questions_file(library: Library, batch: str) -> Path:
    """Its questions."""
    return next(batch_folder(library, batch).glob("questions.*"))


def answers_file(library: Library, batch: str) -> Path:
    """Its answers, one JSON object a line, as they are finished."""
    return batch_folder(library, batch) / "answers.jsonl"


def order_batch(
    library: Library,
    upload: Upload,
    *,
    documents: Sequence[str] = (),
    reader: str = "",
    budget_tokens: int = 0,
) -> Job:
    """Has a file of questions answered in the background.

    Args:
        library: Whose documents are asked.
        upload: The file: JSONL, CSV, Parquet or XLSX, by its name.
        documents: Ids that rows without documents of their own ask; none asks all.
        reader: Of rows that name none; empty takes the settings' one.
        budget_tokens: Likewise; 0 takes the usual one.

    Raises:
        BatchError: the file cannot be used; nothing of it is kept.
    """
    folder = batch_folder(library, upload.id)
    folder.mkdir(parents=True)
    try:
        source = folder / f"questions{Path(upload.name).suffix.lower()}"
        shutil.move(Uploads(library.place.folder).path(upload.id), source)
        try:
            survey(source)
        except GistreeError as error:  # the person knows the file by another name
            raise type(error)(str(error).replace(str(source), upload.name)) from error
    except BaseException:
        shutil.rmtree(folder)
        raise
    return library.jobs.order(
        "batch",
        name=upload.name,
        batch=upload.id,
        documents=tuple(documents),
        reader=reader,
        budget_tokens=budget_tokens,
    )


def latest_answers(library: Library, job: Job, *, most: int = 50) -> list[dict[str, Any]]:
    """The answers that were finished last, the newest first, as ``docs/json.md`` has them."""
    file = answers_file(library, _batch_of(job))
    if not file.exists():
        return []
    with file.open("rb") as lines:
        last = deque(lines, maxlen=most)
    return [json.loads(line) for line in reversed(last) if line.endswith(b"\n")]


def result_file(library: Library, job: Job, kind: str) -> Path:
    """All answers of a batch that is not at work, in the order of the questions.

    Args:
        library: Whose.
        job: The batch.
        kind: "jsonl", "csv" or "parquet".

    Raises:
        OutputNotWritable: it is at work, or the disk fails.
    """
    batch = _batch_of(job)
    out = batch_folder(library, batch) / f"result.{kind}"
    with Journal(answers_file(library, batch)) as journal:
        write_output(journal, out, in_order=True)
    return out


def _batch_of(job: Job) -> str:
    return str(getattr(unpacked(job.kind, job.work), "batch", ""))
