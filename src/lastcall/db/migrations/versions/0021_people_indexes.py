"""The orders in which an operator reads people and the audit: built concurrently, and nothing else."""

from __future__ import annotations

from lastcall.db.migrations.indexes import create_index_concurrently

revision = "0021_people_indexes"
down_revision = "0020_sign_in"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index_concurrently("people_created_at_id_idx", "people", ["created_at", "id"])
    create_index_concurrently(
        "audit_log_actor_person_id_created_at_id_idx", "audit_log", ["actor_person_id", "created_at", "id"]
    )
    create_index_concurrently(
        "audit_log_subject_created_at_id_idx", "audit_log", ["subject", "created_at", "id"]
    )
