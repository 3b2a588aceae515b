"""The audit of sign-ins and of what operators do. A club's own log is ``clubs.activity``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import insert

from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import data_written
from lastcall.people.tables import AuditEntry


async def audit(tx: Transaction, actor_id: UUID | None, action: str, subject: str, **details: Any) -> None:
    """Write one entry in the caller's transaction. ``subject`` names what was acted on and is never a secret;
    no ``actor_id`` means the host's command line."""
    data_written(tx)
    await tx.execute(
        insert(AuditEntry).values(
            id=new_id(), actor_person_id=actor_id, action=action, subject=subject, details=details
        )
    )
