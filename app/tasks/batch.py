"""Answering a file of questions."""

import shutil
from dataclasses import dataclass
from typing import ClassVar

from app.batch.batch import Batch
from app.batch_orders import answers_file, batch_folder, questions_file
from app.library import Library
from app.progress import OnProgress, Progress
from app.task import Lane

__all__ = ["Answers"]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers a file of questions; its answers stay until the job is dismissed.

    Attributes:
        batch: Name of its folder, see ``app.batch_orders``.
        name: What the person calls the file.
        documents: Ids that are asked; none asks all.
        reader: Empty takes the settings' one.
        budget_tokens: 0 takes the usual one.
    """

    lane: ClassVar[Lane] = "ask"
    lasting: ClassVar[bool] = True
    batch: str
    name: str
    documents: tuple[str, ...] = ()
    reader: str = ""
    budget_tokens: int = 0

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Asks the rows that have no answer yet, and those that failed."""
        with Batch(
            library=library,
            source=questions_file(library, self.batch),
            out=answers_file(library, self.batch),
            documents=self.documents or None,
            reader=self.reader or None,
            budget_tokens=self.budget_tokens or None,
            retry_failed=True,
        ) as batch:
            on_progress(Progress(self.name, "ask", batch.finished, batch.total))
            for _event in batch.run():
                on_progress(Progress(self.name, "ask", batch.finished, batch.total))
            failed = f"; {batch.failed:,} could not be asked" if batch.failed else ""
            return f"{batch.finished - batch.failed:,} of {batch.total:,} answered{failed}"

    def undo(self, library: Library) -> bool:
        """Removes questions and answers."""
        shutil.rmtree(batch_folder(library, self.batch), ignore_errors=True)
        return True

    def clear(self, library: Library) -> None:
        """All is kept until the job is dismissed."""
