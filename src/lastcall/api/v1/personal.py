"""What the API keeps about a person: the keys under which their programs created something, for a day."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.api.v1.idempotency import KEY_LIFE
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import Rule, keep
from lastcall.people.personal_data import PersonalData, holds


async def _keys(_: Database, tx: Transaction, person_id: UUID) -> None:
    # One that is locked is being removed: a call has it, and waits perhaps for a gate that is held here.
    await tx.execute(
        text(
            "delete from idempotency_keys where (person_id, key) in ("
            "select person_id, key from idempotency_keys where person_id = :person for update skip locked)"
        ),
        {"person": person_id},
    )


SOURCES = (
    PersonalData(
        "call of your programs",
        ("idempotency_keys.person_id",),
        "select key as k, key, created_at from idempotency_keys where person_id = :person",
        _keys,
    ),
)
RULES = (Rule("what the API answered under an idempotency key", "idempotency_keys", "created_at", KEY_LIFE),)


def register() -> None:
    """Say what this room holds. Registering twice is once."""
    holds(*SOURCES)
    keep(*RULES)
