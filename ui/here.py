"""What every page needs of the server: the library and its jobs."""

from app.jobs import Jobs
from app.library import Library
from app.service import service


def library() -> Library:
    """The library of this server."""
    return service().library


def jobs() -> Jobs:
    """Its work in the background."""
    return service().library.jobs
