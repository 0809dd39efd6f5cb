"""Answers and entries as JSON objects: what ``--json`` prints, what a batch writes.

The keys are documented in docs/json.md and do not change within a major version.
"""

from typing import Any

from agents.answer import Answer, Citation
from memory.document import Problem
from memory.store import Entry


def citation_json(citation: Citation) -> dict[str, Any]:
    """A citation."""
    return {
        "document": citation.document_id,
        "title": citation.title,
        "quote": citation.quote,
        "start": citation.span.start,
        "end": citation.span.end,
        "page": citation.page,
        "label": citation.label,
        "section": list(citation.section),
        "position": round(citation.position, 4),
        "score": citation.score,
    }


def answer_json(question: str, answer: Answer) -> dict[str, Any]:
    """An answer with everything that bears on it."""
    return {
        "question": question,
        "answer": answer.text,
        "found": answer.found,
        "citations": [citation_json(c) for c in answer.citations],
        "nearest": [citation_json(c) for c in answer.nearest],
        "unsupported": list(answer.unsupported),
        "reader": answer.reader,
        "model": answer.model,
        "seconds": round(answer.seconds, 2),
        "usage": {
            "prompt_tokens": answer.usage.prompt_tokens,
            "cached_tokens": answer.usage.cached_tokens,
            "completion_tokens": answer.usage.completion_tokens,
            "calls": answer.usage.calls,
        },
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """A document of the library."""
    return {
        "id": entry.id,
        "name": entry.name,
        "title": entry.title,
        "media_type": entry.media_type,
        "language": entry.language,
        "pages": entry.num_pages,
        "pages_read": entry.pages_read,
        "paged": entry.paged,
        "words": entry.num_words,
        "size_bytes": entry.size_bytes,
        "added_at": entry.added_at.isoformat(),
        "tags": list(entry.tags),
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """Something that could not be read; ``page`` counts from 1."""
    return {
        "page": None if problem.page is None else problem.page + 1,
        "what": problem.what,
        "remedy": problem.remedy,
    }
