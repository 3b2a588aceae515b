"""Deciding a join request by hand: approve, reject, delete; and its requester's own way back, withdraw.

Each opens its own outermost transaction (ACC-17). The club's gate comes first, then the request's row; of two
who decide at once one waits there and then sees what the other decided (ACC-04).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select

from lastcall.access.agents.service import create_agent_in
from lastcall.access.mails import tell_requester
from lastcall.access.policy import handed_on, join_request_unknown, require_readable
from lastcall.access.requests import (
    Decided,
    RequestStatus,
    remove_join_request,
    write_join_request_change,
)
from lastcall.access.tables import Invite, JoinRequest
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_open, standing
from lastcall.clubs.staff import grant_roles
from lastcall.clubs.tables import Club
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed
from lastcall.mail.mailer import Mailer
from lastcall.names import valid_note
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person

NOTE_LENGTH = 1000  # characters
MOST_AT_ONCE = 100  # requests in one call of ``decide_many``


class Verdict(StrEnum):
    """What many requests can be decided to be in one call."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True)
class Outcome:
    """What became of one request of many: decided, or left as it is for a reason."""

    request_id: UUID
    problem: LastcallError | None


async def approve_join_request(
    db: Database,
    actor: Actor,
    club_id: UUID,
    request_id: UUID,
    *,
    note: str | None = None,
    agent_grants: Collection[AgentGrant] | None = None,
    mailer: Mailer | None = None,
) -> None:
    """Let somebody in. A person gets the roles of their invite, and is told with a ``mailer``; of a program an agent is
    made, with ``agent_grants`` (null: all that its invite offers), for which the actor answers.

    Needs ``decide_access`` (without it the request is unknown), and the inviter's authority as it is now, else the
    actor's own: for each role to hand it on, for an agent ``manage_agents``. Raises ``Conflict`` when it was decided
    already (with what it is), when the person is not there any more or owns the club, and in an archived club;
    ``NotAllowed`` for one's own request; ``Invalid`` for grants that the invite does not offer.
    """
    note = valid_note(note, most=NOTE_LENGTH)
    async with _held(db, actor, club_id, request_id) as (tx, request):
        await require_open(tx, club_id)
        approved = Decided(RequestStatus.APPROVED, by=actor.person_id, note=note)
        if request.subject_kind == "agent":
            grants = await _judge_agent(tx, actor, club_id, request, agent_grants)
            await write_join_request_change(db, actor, club_id, request_id, approved)
            await create_agent_in(tx, club_id, request_id, grants, actor.person_id, by=actor)
            return
        if agent_grants is not None:
            raise _beyond_invite()
        person_id = await _person(tx, request)
        if person_id == actor.person_id:
            raise NotAllowed("own_request", "Nobody decides their own request.", advice="Ask somebody else.")
        if person_id == request.owner_id:
            raise Conflict("owner_holds_all", "This person owns the club now.", advice="Reject the request.")
        handed = await handed_on(tx, club_id, request.invited_by, request.role_ids)
        handed |= await handed_on(tx, club_id, actor.person_id, request.role_ids)
        if handed != frozenset(request.role_ids):
            raise NotAllowed(
                "role_not_assignable",
                "Neither you nor the inviter may hand on all the roles of this invitation now.",
                advice="Ask the owner to decide it.",
            )
        await write_join_request_change(db, actor, club_id, request_id, approved)
        await grant_roles(tx, club_id, person_id, request.role_ids, by=actor)
        if mailer is not None:
            await tell_requester(tx, mailer, person_id, club_id, is_in=True)


async def reject_join_request(
    db: Database,
    actor: Actor,
    club_id: UUID,
    request_id: UUID,
    *,
    note: str | None = None,
    mailer: Mailer | None = None,
) -> None:
    """Turn the person or the agent down; they are shown ``note``, and told with a ``mailer``. Needs
    ``decide_access``; errors as above."""
    note = valid_note(note, most=NOTE_LENGTH)
    async with _held(db, actor, club_id, request_id) as (tx, request):
        if request.person_id == actor.person_id:
            raise NotAllowed(
                "own_request", "Nobody decides their own request.", advice="Withdraw it instead."
            )
        rejected = Decided(RequestStatus.REJECTED, by=actor.person_id, note=note)
        await write_join_request_change(db, actor, club_id, request_id, rejected)
        if mailer is not None and request.person_id is not None:
            await tell_requester(tx, mailer, request.person_id, club_id, is_in=False)


async def decide_many(
    db: Database,
    actor: Actor,
    club_id: UUID,
    verdict: Verdict,
    request_ids: Sequence[UUID],
    *,
    note: str | None = None,
    mailer: Mailer | None = None,
) -> list[Outcome]:
    """Decide up to ``MOST_AT_ONCE`` requests alike, each by itself: one that cannot be decided stays as it is and
    says why, and the others are decided. The answer is in the order of the ids.

    Without ``decide_access`` there are none (``NotFound``); ``Invalid`` for too many and for a malformed note.
    """
    valid_note(note, most=NOTE_LENGTH)
    if not 1 <= len(request_ids) <= MOST_AT_ONCE:
        raise Invalid(
            "requests_too_many",
            f"1 to {MOST_AT_ONCE} requests are decided at once.",
            advice="Choose fewer.",
            field="ids",
        )
    async with db.read() as tx:
        await require_readable(tx, actor, club_id, scope=Scope.ACCESS)
    decide = approve_join_request if verdict is Verdict.APPROVE else reject_join_request
    outcomes = []
    for request_id in request_ids:
        problem = None
        try:
            await decide(db, actor, club_id, request_id, note=note, mailer=mailer)
        except LastcallError as refusal:
            problem = refusal
        outcomes.append(Outcome(request_id, problem))
    return outcomes


async def delete_join_request(db: Database, actor: Actor, club_id: UUID, request_id: UUID) -> None:
    """Delete a request that waits or was turned down or withdrawn, with what was noted beside it (ACC-16).

    Needs ``decide_access``, without which it is unknown. ``Conflict`` for an approved one; ``NotAllowed`` for
    one's own, which is withdrawn.
    """
    async with db.transaction(outermost=True) as tx:
        await bump_gate(tx, club_id)
        await require_readable(tx, actor, club_id, scope=Scope.ACCESS)
        request = await _lock(tx, club_id, request_id)
        if request is None:
            raise join_request_unknown()
        if request.person_id == actor.person_id:
            raise NotAllowed(
                "own_request", "Nobody deletes their own request.", advice="Withdraw it instead."
            )
        await remove_join_request(db, actor, club_id, request_id)


async def withdraw_join_request(db: Database, actor: Actor, club_id: UUID, request_id: UUID) -> None:
    """Take one's own waiting request back. Somebody else's is unknown."""
    actor.require_scope(Scope.ACCESS)
    async with db.transaction(outermost=True) as tx:
        mine = await tx.scalar(
            select(JoinRequest.id).where(
                JoinRequest.club_id == club_id,
                JoinRequest.id == request_id,
                JoinRequest.person_id == actor.person_id,
            )
        )
        if mine is None:
            raise join_request_unknown()
        await write_join_request_change(db, actor, club_id, request_id, Decided(RequestStatus.WITHDRAWN))


@asynccontextmanager
async def _held(
    db: Database, actor: Actor, club_id: UUID, request_id: UUID
) -> AsyncIterator[tuple[Transaction, Row[Any]]]:
    """The pending request under its lock, with what its invite says, for somebody who may decide it."""
    async with db.transaction(outermost=True) as tx:
        await bump_gate(tx, club_id)
        await require_readable(tx, actor, club_id, scope=Scope.ACCESS)
        await _lock(tx, club_id, request_id)
        request = (
            await tx.execute(
                select(
                    JoinRequest.status,
                    JoinRequest.subject_kind,
                    JoinRequest.person_id,
                    JoinRequest.email,
                    Invite.role_ids,
                    Invite.agent_grants,
                    Invite.invited_by,
                    Club.owner_id,
                )
                .join(Invite, (Invite.club_id == JoinRequest.club_id) & (Invite.id == JoinRequest.invite_id))
                .join(Club, Club.id == JoinRequest.club_id)
                .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
            )
        ).one_or_none()
        if request is None:
            raise join_request_unknown()
        if request.status != "pending_approval":
            raise Conflict(
                "request_decided",
                f"This request is {request.status} already.",
                advice="Load it again.",
                fresh=request.status,
            )
        yield tx, request


async def _lock(tx: Transaction, club_id: UUID, request_id: UUID) -> Row[Any] | None:
    """Of two who decide the second waits here, and then sees what the first decided."""
    found = await tx.execute(
        select(JoinRequest.id, JoinRequest.person_id)
        .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
        .with_for_update(key_share=True)
    )
    return found.one_or_none()


async def _judge_agent(
    tx: Transaction,
    actor: Actor,
    club_id: UUID,
    request: Row[Any],
    chosen: Collection[AgentGrant] | None,
) -> list[AgentGrant]:
    """What the agent is to be allowed, if somebody may let it in now."""
    offered = [AgentGrant(grant) for grant in request.agent_grants]
    grants = offered if chosen is None else sorted(set(chosen))
    if not set(grants) <= set(offered):
        raise _beyond_invite()
    for person_id in (request.invited_by, actor.person_id):
        if (await standing(tx, club_id, person_id)).holds(Permission.MANAGE_AGENTS):
            return grants
    raise NotAllowed(
        "agents_not_managed",
        "Neither you nor the inviter may manage agents now.",
        advice="Ask the owner to decide it.",
    )


def _beyond_invite() -> Invalid:
    return Invalid(
        "grants_beyond_invite",
        "The invitation does not offer all of these grants.",
        advice="Choose among those that it offers; more can be given to the agent afterwards.",
        field="agent_grants",
    )


async def _person(tx: Transaction, request: Row[Any]) -> UUID:
    """Whom to let in, held against being blocked or erased meanwhile."""
    who = (
        Person.id == request.person_id
        if request.person_id is not None
        else (func.lower(Person.email) == func.lower(request.email)) & Person.email_verified_at.is_not(None)
    )
    person_id: UUID | None = await tx.scalar(
        select(Person.id).where(who, Person.blocked_at.is_(None)).with_for_update(read=True)
    )
    if person_id is None:
        raise Conflict(
            "requester_gone",
            "Nobody who may sign in stands behind this request.",
            advice="Reject it, or wait until that person has signed in.",
        )
    return person_id
