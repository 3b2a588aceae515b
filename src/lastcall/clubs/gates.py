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
    """The same for every club the person owns or works for, in id order, so that two callers cannot
    deadlock. The person's row is locked first: a transfer of a club to them, which locks it too, is either
    over and its gate among these, or comes later and sees what became of them.
    """
    await tx.execute(select(Person.id).where(Person.id == person_id).with_for_update(key_share=True))
    clubs = union(
        select(Club.id).where(Club.owner_id == person_id),
        select(StaffAssignment.club_id).where(StaffAssignment.person_id == person_id),
    ).subquery()
    gates = await tx.execute(
        select(ClubGate.club_id)
        .where(ClubGate.club_id.in_(select(clubs.c.id)))
        .order_by(ClubGate.club_id)
        .with_for_update(key_share=True)
    )
    for (club_id,) in gates.all():
        await bump_gate(tx, club_id)
