"""Reads about people, for commands and screens."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select

from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.tables import Person


async def person_by_email(tx: Reader, email: str) -> UUID:
    """The id of the person with this address, in any case. Raises ``NotFound``, in words for the host's command
    line; a public form must not repeat them."""
    person_id: UUID | None = await tx.scalar(
        select(Person.id).where(func.lower(Person.email) == email.strip().lower())
    )
    if person_id is None:
        raise NotFound(
            "person_unknown",
            f"Nobody has the address {email.strip()}.",
            advice="Add them first with `lastcall person add`.",
            field="email",
        )
    return person_id
