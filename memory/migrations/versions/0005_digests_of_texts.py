"""The digest of each text, by which a check tells that it is still what was read."""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_texts = sa.table("texts", sa.column("document_id"), sa.column("text"), sa.column("digest"))


def upgrade() -> None:
    """To this revision; of texts that are there the digest is taken now, one by one."""
    op.add_column(
        "texts", sa.Column("digest", sa.String(length=64), server_default="", nullable=False)
    )
    bind = op.get_bind()
    for key in bind.scalars(sa.select(_texts.c.document_id)).all():
        its = _texts.c.document_id == key
        text = bind.scalar(sa.select(_texts.c.text).where(its)) or ""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        bind.execute(sa.update(_texts).where(its).values(digest=digest))


def downgrade() -> None:
    """Back from it."""
    op.drop_column("texts", "digest")
