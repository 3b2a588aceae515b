"""The club's gate: whoever takes authority away passes through it, so that authorize sees the change or
precedes it.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select, union, update

from lastcall.clubs.tables import Club, ClubGate, StaffAssignment
from lastcall.db.transaction import Transaction
from lastcall.people.tables import Person


async def bump_gate(tx: Transaction, club_id: UUID) -> None:
    """Lock the club's gate and raise its generation. Call it before the rows that carry the authority
    change: the gate comes first in the lock order, and an authorize that holds it is let through before the
    change.
    """
    await tx.execute(
        update(ClubGate).where(ClubGate.club_id == club_id).values(generation=ClubGate.generation + 1)
    )


async def hold_gate(tx: Transaction, club_id: UUID) -> None:
    """Hold the gate ``FOR SHARE`` until the transaction ends: nobody's authority changes in that time. What is
    judged must be read in a later statement."""
    await tx.execute(
        select(ClubGate.generation).where(ClubGate.club_id == club_id).with_for_update(read=True)
    )


async def bump_gates_of_person(tx: Transaction, person_id: UUID) -> None:
    """The same for every club the person owns or works for, in id order, so that two callers cannot deadlock.

    Gates come before people in the lock order, so somebody may give them a club or a role between the two
    (``lock_person``). Whoever takes all from a person therefore calls this first, and again once the person's row
    is locked and nobody can give them anything any more.
    """
    clubs = union(
        select(Club.id).where(Club.owner_id == person_id),
        select(StaffAssignment.club_id).where(StaffAssignment.person_id == person_id),
    )
    for club_id in sorted((await tx.execute(clubs)).scalars().all()):
        await bump_gate(tx, club_id)


async def lock_person(tx: Transaction, person_id: UUID) -> bool:
    """Whether the person may be given authority: known, neither blocked nor erased. They stay so until the
    transaction ends. Call it after the club's gate."""
    found = select(Person.id).where(Person.id == person_id, Person.blocked_at.is_(None))
    return await tx.scalar(found.with_for_update(read=True)) is not None
