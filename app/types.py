"""The values that pages show, in one place, so that the web page needs to know ``app`` only."""

from agents.answer import Answer, Citation, place
from agents.steps import (
    Assembled,
    Building,
    Called,
    Degraded,
    Drafted,
    Drafting,
    LookedUp,
    Noted,
    Pruned,
    Routed,
    Searched,
    Step,
    Verified,
    Voted,
    Walked,
    Weighed,
)
from memory.document import Document, Page, Problem, Section, Span
from memory.errors import (
    DocumentError,
    DocumentNotFound,
    LibraryError,
    LibraryReadOnly,
    PasswordNeeded,
)
from memory.gists import GistMemory
from memory.job_book import Job
from memory.store import Entry
from memory.tree import MemoryTree, Node
from serving.errors import GistreeError, MissingExtra, ModelError, ModelNotFound
from serving.model import Usage

__all__ = [
    "Answer",
    "Assembled",
    "Building",
    "Called",
    "Citation",
    "Degraded",
    "Document",
    "DocumentError",
    "DocumentNotFound",
    "Drafted",
    "Drafting",
    "Entry",
    "GistMemory",
    "GistreeError",
    "Job",
    "LibraryError",
    "LibraryReadOnly",
    "LookedUp",
    "MemoryTree",
    "MissingExtra",
    "ModelError",
    "ModelNotFound",
    "Node",
    "Noted",
    "Page",
    "PasswordNeeded",
    "Problem",
    "Pruned",
    "Routed",
    "Searched",
    "Section",
    "Span",
    "Step",
    "Usage",
    "Verified",
    "Voted",
    "Walked",
    "Weighed",
    "place",
]
