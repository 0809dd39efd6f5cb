"""What a model made of a document, kept under a hash of everything that it was made from."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from memory.errors import DocumentNotFound
from memory.store import Store
from memory.tables import ArtefactRow, DocumentRow
from serving.model import Usage

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Artefact:
    """One finished piece of a memory.

    Attributes:
        data: What it is, as JSON values.
        usage: Tokens that it took.
        made_at: When.
    """

    data: Any
    usage: Usage
    made_at: datetime


def artefact_key(
    kind: str, *, source: str, prompt: str = "", model: str = "", options: Mapping[str, Any] = {}
) -> str:
    """The key of what is made from these: SHA-256, hexadecimal.

    Args:
        kind: What it is: "gist", "summary" …
        source: The text that it is made from.
        prompt: The prompt's file, slots unfilled.
        model: Name of the model.
        options: Whatever else shapes the result.
    """
    parts = json.dumps([kind, source, prompt, model, dict(options)], sort_keys=True)
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


class Artefacts:
    """Keeps them in the library's database; they go when their document goes.

    Each is one transaction, so that a killed process loses only what was not finished. Safe for
    many threads and many processes.
    """

    def __init__(self, store: Store, *, read_only: bool = False) -> None:
        """Keeps nothing where ``read_only``; what is made is then lost after its use."""
        self._store = store
        self._read_only = read_only

    def find(self, document_id: str, keys: Sequence[str]) -> dict[str, Artefact]:
        """Those of the keys that are there."""
        found: dict[str, Artefact] = {}
        with self._store.transaction() as session:
            for at in range(0, len(keys), _AT_ONCE):
                query = select(ArtefactRow).where(
                    ArtefactRow.document_id == document_id,
                    ArtefactRow.key.in_(keys[at : at + _AT_ONCE]),
                )
                for row in session.scalars(query):
                    usage = Usage(
                        row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.calls
                    )
                    found[row.key] = Artefact(json.loads(row.data), usage, row.made_at)
        return found

    def put(self, document_id: str, key: str, *, kind: str, data: Any, usage: Usage) -> None:
        """Keeps one, at once. What another process has kept under that key stays.

        Raises:
            DocumentNotFound: the document was deleted meanwhile.
        """
        if self._read_only:
            return
        row = ArtefactRow(
            document_id=document_id,
            key=key,
            kind=kind,
            data=json.dumps(data, ensure_ascii=False),
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            calls=usage.calls,
            made_at=datetime.now(UTC),
        )
        with self._store.writing() as session:
            if session.get(DocumentRow, document_id) is None:
                raise DocumentNotFound(
                    f"{self._store.where} no longer holds the document {document_id[:12]}, so "
                    "nothing more is made of it"
                )
            try:
                with session.begin_nested():
                    session.add(row)
            except IntegrityError:  # another process made the same
                return

    def forget(self, document_id: str) -> int:
        """Removes all that was made of a document; says how many there were."""
        with self._store.writing() as session:
            gone = session.execute(
                delete(ArtefactRow).where(ArtefactRow.document_id == document_id)
            )
            return int(gone.rowcount)  # type: ignore[attr-defined]
