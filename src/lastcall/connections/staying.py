"""Accounts that stayed in a group when a connection to it ended, or when another account took it over.

What a group lets an account do it lets it do for the club that it was connected to. An account that is a member still
would be let in at once when another club connects the same group, with all that it was given there for the first. So
that group and account stay that club's until the account has left, or an operator has looked and connects them.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict

STAYED_DIRECTORY = "vrchat_stayed"
"""The directory kind; the key is the group's id in small letters and the account's id."""
NOBODY = UUID(int=0)
"""Whose it is once the club is deleted."""

_WAS_LET_IN = text("""
    select exists (
        select from evidence
        where club_id = :club_id and connection_id = :connection_id and account_id = :account_id
          and kind = 'own_member' and body ->> 'memberStatus' = 'member')
""")


async def note_stayed(
    tx: Transaction, club_id: UUID, connection_id: UUID, group_id: str, account_id: UUID, *, of: UUID
) -> None:
    """Record for the club ``of`` that the account did not leave, if it was ever seen as a member. ``club_id`` and
    ``connection_id`` name the connection that it was let in for."""
    about = {"club_id": club_id, "connection_id": connection_id, "account_id": account_id}
    if await tx.scalar(_WAS_LET_IN, about):
        row = upsert(Directory).values(kind=STAYED_DIRECTORY, key=_key(group_id, account_id), club_id=of)
        await tx.execute(
            row.on_conflict_do_update(index_elements=["kind", "key"], set_={"club_id": row.excluded.club_id})
        )


async def note_left(tx: Transaction, group_id: str, account_id: UUID) -> None:
    """The account is out of the group: whoever connects it next has to let it in."""
    await tx.execute(
        delete(Directory).where(
            Directory.kind == STAYED_DIRECTORY, Directory.key == _key(group_id, account_id)
        )
    )


async def refuse_stayed(tx: Transaction, club_id: UUID, group_id: str, account_id: UUID) -> None:
    """Raises ``Conflict`` where the account is in the group for another club."""
    of = await tx.scalar(
        select(Directory.club_id).where(
            Directory.kind == STAYED_DIRECTORY, Directory.key == _key(group_id, account_id)
        )
    )
    if of is not None and of != club_id:
        raise Conflict(
            "account_stayed",
            "The VRChat account that would serve this club was let into the group for another one.",
            advice="Remove that account from the group in VRChat, then ask an operator to connect the group.",
        )


def _key(group_id: str, account_id: UUID) -> str:
    return f"{group_id.lower()} {account_id}"
