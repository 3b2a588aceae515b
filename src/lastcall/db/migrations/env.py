"""Alembic's entry: the connection and the models come from ``migrate()``; there is no offline mode."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["metadata"],
    # A concurrent index must commit what came before it, so no transaction spans two revisions.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
