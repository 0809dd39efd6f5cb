"""chats."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "chats",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "turns",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("chat_id", sa.String(length=32), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("documents", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("budget_tokens", sa.Integer(), nullable=False),
        sa.Column("again_of", sa.String(length=32), nullable=False),
        sa.Column("asked_at", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("draft", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("feedback", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("beat", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("turns", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_turns_chat_id"), ["chat_id"], unique=False)

    op.create_table(
        "turn_documents",
        sa.Column("turn_id", sa.String(length=32), nullable=False),
        sa.Column("document_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id", "document_id"),
    )
    with op.batch_alter_table("turn_documents", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_turn_documents_document_id"), ["document_id"], unique=False
        )


def downgrade() -> None:
    """Back from it."""
    op.drop_table("turn_documents")
    op.drop_table("turns")
    op.drop_table("chats")
