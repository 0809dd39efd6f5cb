"""gistree reads documents too long for a model's window and answers with citations that hold.

>>> import gistree
>>> library = gistree.open("~/reading")                    # doctest: +SKIP
>>> book = library.add("moby-dick.epub", on_progress=print)  # doctest: +SKIP
>>> answer = library.ask("Who lost a leg to the whale?")     # doctest: +SKIP
>>> print(answer.text, [(c.place, c.quote) for c in answer.citations])  # doctest: +SKIP
"""

from agents.answer import Answer, Citation
from agents.steps import Assembled, Drafted, Drafting, Pruned, Searched, Step, Verified
from app.library import Failure, Library, readers
from app.library import open_library as open
from app.progress import Progress
from app.settings import Settings
from memory.document import Document, Page, Problem, Section, Span
from memory.errors import (
    DocumentError,
    DocumentNotFound,
    DocumentProtected,
    DocumentTooLarge,
    EmptyDocument,
    LibraryError,
    LibraryReadOnly,
    LibraryTooNew,
    PasswordNeeded,
    StorageFull,
    UnreadableDocument,
    UnsupportedFormat,
)
from memory.store import Entry
from retrieval.errors import BudgetTooSmall, RetrievalError
from serving.errors import (
    BadReply,
    ContextOverflow,
    FetchFailed,
    GistreeError,
    MissingExtra,
    ModelError,
    ModelNotFound,
    ModelUnavailable,
    UnknownName,
)
from serving.model import Completion, LanguageModel, Message, Usage

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Assembled",
    "BadReply",
    "BudgetTooSmall",
    "Citation",
    "Completion",
    "ContextOverflow",
    "Document",
    "DocumentError",
    "DocumentNotFound",
    "DocumentProtected",
    "DocumentTooLarge",
    "Drafted",
    "Drafting",
    "EmptyDocument",
    "Entry",
    "Failure",
    "FetchFailed",
    "GistreeError",
    "LanguageModel",
    "Library",
    "LibraryError",
    "LibraryReadOnly",
    "LibraryTooNew",
    "Message",
    "MissingExtra",
    "ModelError",
    "ModelNotFound",
    "ModelUnavailable",
    "Page",
    "PasswordNeeded",
    "Problem",
    "Progress",
    "Pruned",
    "RetrievalError",
    "Searched",
    "Section",
    "Settings",
    "Span",
    "Step",
    "StorageFull",
    "UnknownName",
    "UnreadableDocument",
    "UnsupportedFormat",
    "Usage",
    "Verified",
    "open",
    "readers",
]
