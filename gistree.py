r"""gistree reads documents too long for a model's window and answers with citations that hold.

A library is a folder (or a database URL). Here a scripted model answers, so that the example runs
anywhere; without ``model=`` the best one that this machine has does.

>>> import gistree
>>> from serving.scripted import ScriptedLLM
>>> library = gistree.open("reading", model=ScriptedLLM(["It sank in March.", "NOT FOUND"]))
>>> tale = b"The lamp went out at nine.\n\nThe schooner Petrel struck the reef in March and sank."
>>> book = library.add(tale, name="lamp.txt")
>>> answer = library.ask("When did the Petrel sink?", documents=[book.id])
>>> answer.text, answer.found
('It sank in March.', True)
>>> answer.citations[0].quote
'The schooner Petrel struck the reef in March and sank.'
>>> library.ask("Who was her captain?").found
False
>>> [entry.name for entry in library.list()]
['lamp.txt']
>>> library.delete(book.id).name
'lamp.txt'
>>> library.close()
"""

from agents.answer import Answer, Citation
from agents.steps import (
    Assembled,
    Called,
    Degraded,
    Drafted,
    Drafting,
    Noted,
    Pruned,
    Routed,
    Searched,
    Step,
    Verified,
    Voted,
)
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
    "Called",
    "Citation",
    "Completion",
    "ContextOverflow",
    "Degraded",
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
    "Noted",
    "Page",
    "PasswordNeeded",
    "Problem",
    "Progress",
    "Pruned",
    "RetrievalError",
    "Routed",
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
    "Voted",
    "open",
    "readers",
]
