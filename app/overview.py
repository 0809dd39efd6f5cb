"""What the page of the library shows: documents found and sorted, a part at a time, and sizes."""

import os
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from app.library import Library
from memory.store import Entry

SORTS: dict[str, tuple[Callable[[Entry], Any], bool]] = {
    "Newest first": (lambda e: e.added_at, True),
    "Oldest first": (lambda e: e.added_at, False),
    "Title": (lambda e: e.title.casefold(), False),
    "Longest first": (lambda e: e.num_words, True),
    "Largest file first": (lambda e: e.size_bytes, True),
}
"""Orders by name: what they sort by, and whether the greatest comes first."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Documents as a page shows them.

    Attributes:
        rows: Those of this part, with the number of problems of each.
        num_found: All that fit, over all parts.
        num_documents: All in the library, those about to be deleted aside.
        num_words: Of all of them.
        num_parts: How many parts there are; at least 1.
        tags: All tags, the most used first.
    """

    rows: tuple[tuple[Entry, int], ...]
    num_found: int
    num_documents: int
    num_words: int
    num_parts: int
    tags: tuple[str, ...]


def overview(
    library: Library,
    *,
    words: str = "",
    tags: Collection[str] = (),
    sort: str = "Newest first",
    part: int = 0,
    at_once: int = 20,
) -> Overview:
    """One part of the documents that fit.

    Args:
        library: Of which.
        words: Each must stand in the title, the name or a tag.
        tags: A document must bear all of them.
        sort: One of ``SORTS``.
        part: Which part, from 0; the last one where there are not so many.
        at_once: Documents in a part.
    """
    leaving = {
        job.document_id
        for job in library.jobs.list()
        if job.kind == "delete" and job.state in ("queued", "running")
    }
    entries = [entry for entry in library.list() if entry.id not in leaving]
    wanted = words.casefold().split()
    found = [
        entry
        for entry in entries
        if set(tags) <= set(entry.tags)
        and all(
            word in "\n".join((entry.title, entry.name, *entry.tags)).casefold() for word in wanted
        )
    ]
    by, greatest_first = SORTS[sort]
    found.sort(key=by, reverse=greatest_first)
    num_parts = max(1, -(-len(found) // at_once))
    first = min(max(part, 0), num_parts - 1) * at_once
    shown = found[first : first + at_once]
    problems = library.num_problems()
    return Overview(
        rows=tuple((entry, problems.get(entry.id, 0)) for entry in shown),
        num_found=len(found),
        num_documents=len(entries),
        num_words=sum(entry.num_words for entry in entries),
        num_parts=num_parts,
        tags=tuple(tag for tag, _ in Counter(t for e in entries for t in e.tags).most_common()),
    )


def room_bytes(library: Library) -> int:
    """Bytes that a library takes on this disk: files, database, indexes, uploads."""
    total = 0
    for parent, _, names in os.walk(library.place.folder):
        for name in names:
            with suppress(FileNotFoundError):  # it went while it was counted
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def size(size_bytes: float) -> str:
    """A number of bytes as a person says it."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} bytes"
    if size_bytes < 1e6:
        return f"{size_bytes / 1e3:.0f} kB"
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 1e9 else f"{size_bytes / 1e9:.1f} GB"


def time_left(seconds: float) -> str:
    """A span of time as a person says it."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"{round(seconds / 10) * 10} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"
