"""Making a document's gist memory and memory tree."""

from dataclasses import dataclass
from typing import ClassVar

from app.library import Library
from app.progress import OnProgress, Progress
from app.task import Lane

__all__ = ["Remember"]


@dataclass(frozen=True, slots=True)
class Remember:
    """Makes what is missing of both; every finished call is kept, so any try goes on.

    Attributes:
        name: The document's title.
        document_id: Whose memory.
    """

    lane: ClassVar[Lane] = "ask"
    lasting: ClassVar[bool] = False
    name: str
    document_id: str

    def run(self, library: Library, on_progress: OnProgress, secret: str) -> str:
        """Makes the tree, and with it the gists."""
        making = library.memories.tree(self.document_id)
        try:
            while True:
                step = next(making)
                on_progress(Progress(f"{self.name}: {step.what}", "ask", step.done, step.total))
        except StopIteration as end:
            leaves = sum(not node.children for node in end.value.nodes)
            return f"{leaves:,} gists, {len(end.value.nodes) - leaves:,} summaries"
        finally:
            making.close()

    def undo(self, library: Library) -> bool:
        """What was finished is kept: it was paid for, and goes with its document."""
        return True

    def clear(self, library: Library) -> None:
        """Nothing else is kept."""
