"""Answers and entries as JSON objects: what ``--json`` prints, what a batch writes.

The keys are documented in docs/json.md and do not change within a major version.
"""

from collections.abc import Mapping
from typing import Any

from agents.answer import Answer, Citation, Claim
from memory.document import Problem, Span
from memory.gists import GistMemory
from memory.store import Entry
from memory.tree import MemoryTree
from serving.model import Usage


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
        "claims": [
            {"start": c.span.start, "end": c.span.end, "citations": list(c.citations)}
            for c in answer.claims
        ],
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


def citation_of(data: Mapping[str, Any]) -> Citation:
    """The citation that ``citation_json`` wrote."""
    return Citation(
        document_id=data["document"],
        title=data["title"],
        span=Span(data["start"], data["end"]),
        quote=data["quote"],
        page=data["page"],
        label=data["label"],
        section=tuple(data["section"]),
        position=data["position"],
        score=data["score"],
    )


def answer_of(data: Mapping[str, Any]) -> Answer:
    """The answer that ``answer_json`` wrote."""
    return Answer(
        text=data["answer"],
        citations=tuple(map(citation_of, data["citations"])),
        found=data["found"],
        nearest=tuple(map(citation_of, data["nearest"])),
        usage=Usage(**data["usage"]),
        reader=data["reader"],
        model=data["model"],
        seconds=data["seconds"],
        unsupported=tuple(data["unsupported"]),
        claims=tuple(
            Claim(Span(c["start"], c["end"]), tuple(c["citations"])) for c in data["claims"]
        ),
    )


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


def gists_json(memory: GistMemory) -> dict[str, Any]:
    """A gist memory."""
    return {
        "document": memory.document_id,
        "compression": round(memory.compression, 1),
        "gists": [
            {
                "number": gist.number,
                "start": gist.span.start,
                "end": gist.span.end,
                "gist": gist.text,
                "words": gist.words,
                "source_words": gist.source_words,
                "by": gist.by,
                "fault": gist.fault,
            }
            for gist in memory.gists
        ],
    }


def tree_json(tree: MemoryTree) -> dict[str, Any]:
    """A memory tree; the last node is the root."""
    return {
        "document": tree.document_id,
        "nodes": [
            {
                "number": node.number,
                "level": node.level,
                "start": node.span.start,
                "end": node.span.end,
                "children": list(node.children),
                "parent": node.parent,
                "title": node.title,
                "text": node.text,
                "by": node.by,
            }
            for node in tree.nodes
        ],
    }
