"""The values that pages show, in one place, so that the web page needs to know ``app`` only."""

from agents.answer import Answer, Citation
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
from memory.job_book import Job
from memory.store import Entry
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
    "GistreeError",
    "Job",
    "LibraryError",
    "LibraryReadOnly",
    "LookedUp",
    "MissingExtra",
    "ModelError",
    "ModelNotFound",
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
]
