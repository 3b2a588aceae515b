"""Accepting an invite: one transaction that lets somebody in or puts them in front of the door, or nothing.

The club's gate is taken first, because the inviter's authority is what lets somebody in: whoever takes it away
passes the gate too, so the acceptance sees that or precedes it. Then the invite's row, which makes one of two
acceptances wait for the other, then the person's. Only after that, in new statements, is anything judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, or_, select

from lastcall.access.agents.claims import new_claim
from lastcall.access.grants import held_roles
from lastcall.access.invites import INVITE_DIRECTORY, TOPIC, InviteKind
from lastcall.access.mails import tell_inviter
from lastcall.access.policy import handed_on, invite_unknown
from lastcall.access.requests import (
    INVITE,
    Activity,
    AgentSubject,
    Decided,
    PersonSubject,
    RequestStatus,
    mark_accepted,
    record_join_request,
    write_join_request_change,
)
from lastcall.access.tables import Invite, InviteUse, JoinRequest
from lastcall.clubs.activity import log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import standing
from lastcall.clubs.staff import grant_roles
from lastcall.clubs.tables import Club
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.tables import Directory
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, NotAllowed, NotSignedIn
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person
from lastcall.people.tokens import token_hash


@dataclass(frozen=True)
class Acceptance:
    """What became of an accepted invite: the request it turned into, or an earlier one that was waiting."""

    club_id: UUID
    request_id: UUID
    status: RequestStatus


@dataclass(frozen=True)
class AgentAcceptance(Acceptance):
    """The same of an agent. ``claim_secret`` is shown this once and stored nowhere; null for a replay."""

    claim_secret: str | None


async def accept_invite(
    db: Database, actor: Actor, token: str, *, mailer: Mailer | None = None
) -> Acceptance:
    """Accept as a person: a join request, approved in the same transaction when the invite says so and the
    inviter may still hand on each of its roles. With a ``mailer`` the inviter is told.

    Refused without using the invite: ``NotFound`` (one answer for a token that was never made, is used up,
    revoked or expired, and for an inviter, role or club that lets nobody in any more), ``NotAllowed`` for
    an agent's invite, one's own and one for another address, ``Conflict`` for the owner and for whoever holds
    all its roles. The same person accepting again while it is valid gets the same answer and takes no further
    use; a request of this invite that still waits counts as active then (ACC-14). Opens its own transaction
    (ACC-17).
    """
    actor.require_scope(Scope.ACCESS)
    async with db.transaction(outermost=True) as tx:
        club_id = await _club_of(tx, token)
        await bump_gate(tx, club_id)
        invite_id = await _lock_invite(tx, club_id, token)
        person = await _lock_person(tx, actor)
        invite = await _read(tx, club_id, invite_id)
        made = await request_of(tx, club_id, invite_id, person.id)
        if made is not None:
            return await _replay(db, actor, invite, made)
        if invite.accepted_at is not None:
            raise invite_unknown()
        await _judge(tx, invite, person)
        request_id, status = await _ask(db, tx, invite, person)
        if invite.approves:
            approved = Decided(RequestStatus.APPROVED, by=invite.invited_by)
            await write_join_request_change(db, INVITE, club_id, request_id, approved)
            # Outside of the small transaction around the request, in the same large one (ACC-10).
            await grant_roles(tx, club_id, person.id, invite.role_ids, by=INVITE)
            status = RequestStatus.APPROVED
        await log(tx, club_id, actor, "invite.accepted", "invite", invite_id, {"request": str(request_id)})
        if mailer is not None:
            is_in = status is RequestStatus.APPROVED
            await tell_inviter(tx, mailer, invite.invited_by, club_id, actor.display_name, is_in=is_in)
        tx.publish(Hint(club_id, TOPIC))
    return Acceptance(club_id, request_id, status)


async def accept_invite_as_agent(
    db: Database, token: str, subject: AgentSubject, *, claim_secret: str | None = None
) -> AgentAcceptance:
    """Accept as a program under the name it gives itself: always a request that waits for a decision. The answer
    holds the secret with which the agent claims its key once somebody let it in.

    With the ``claim_secret`` of an earlier answer it is that request again, which counts as active while it waits and
    may be renamed; that ends with the invite (ACC-14). ``NotFound`` as for a person, and for a wrong secret;
    ``NotAllowed`` for an invite that is for people; ``Invalid`` for a malformed name or description. Opens its own
    transaction (ACC-17).
    """
    async with db.transaction(outermost=True) as tx:
        club_id = await _club_of(tx, token)
        await bump_gate(tx, club_id)
        invite = await _read(tx, club_id, await _lock_invite(tx, club_id, token))
        if claim_secret is not None:
            return await _replayed_by_agent(db, tx, invite, subject, claim_secret)
        if invite.accepted_at is not None:
            raise invite_unknown()
        if invite.kind == InviteKind.PERSON:
            raise NotAllowed(
                "invite_for_people", "This invitation is for a person.", advice="Open it signed in."
            )
        inviter = await standing(tx, club_id, invite.invited_by)
        if not inviter.holds(Permission.MANAGE_AGENTS):
            raise invite_unknown()
        secret, claim_hash = new_claim()
        asking = replace(subject, claim_hash=claim_hash)
        request_id = await record_join_request(db, club_id, invite.id, asking)
        await log(tx, club_id, INVITE, "invite.accepted", "invite", invite.id, {"request": str(request_id)})
        tx.publish(Hint(club_id, TOPIC))
    return AgentAcceptance(club_id, request_id, RequestStatus.PENDING, secret)


async def _replayed_by_agent(
    db: Database, tx: Reader, invite: Row[Any], subject: AgentSubject, claim_secret: str
) -> AgentAcceptance:
    """Whoever has the secret of a request of this invite is its agent: it is heard of again, and may say anew who it
    is while it waits. A wrong secret finds nothing."""
    made = (
        await tx.execute(
            select(JoinRequest.id, JoinRequest.status).where(
                JoinRequest.club_id == invite.club_id,
                JoinRequest.invite_id == invite.id,
                JoinRequest.claim_secret_hash == token_hash(claim_secret),
            )
        )
    ).one_or_none()
    if made is None:
        raise invite_unknown()
    status = RequestStatus(made.status)
    if status is RequestStatus.PENDING:
        await write_join_request_change(db, INVITE, invite.club_id, made.id, Activity(subject))
    return AgentAcceptance(invite.club_id, made.id, status, None)


async def _club_of(tx: Reader, token: str) -> UUID:
    club_id: UUID | None = await tx.scalar(
        select(Directory.club_id).where(
            Directory.kind == INVITE_DIRECTORY, Directory.key == token_hash(token).hex()
        )
    )
    if club_id is None:
        raise invite_unknown()
    return club_id


async def _lock_invite(tx: Transaction, club_id: UUID, token: str) -> UUID:
    invite_id: UUID | None = await tx.scalar(
        select(Invite.id)
        .where(Invite.club_id == club_id, Invite.token_hash == token_hash(token))
        .with_for_update(key_share=True)
    )
    if invite_id is None:
        raise invite_unknown()
    return invite_id


async def _lock_person(tx: Transaction, actor: Actor) -> Row[Any]:
    """The person, held so that whoever blocks or erases them comes before or after all of this."""
    person = (
        await tx.execute(
            select(Person.id, Person.email, Person.email_verified_at)
            .where(Person.id == actor.person_id, Person.blocked_at.is_(None))
            .with_for_update(read=True)
        )
    ).one_or_none()
    if person is None:
        raise NotSignedIn("not_signed_in", "You are not signed in.", advice="Sign in again.")
    return person


async def _read(tx: Reader, club_id: UUID, invite_id: UUID) -> Row[Any]:
    """The invite as it is now, if it may be used or was used and its replays count: neither revoked nor expired,
    of a club that goes on."""
    invite = (
        await tx.execute(
            select(
                Invite.id,
                Invite.club_id,
                Invite.kind,
                Invite.role_ids,
                Invite.email,
                Invite.approves,
                Invite.invited_by,
                Invite.accepted_at,
                Invite.agent_grants,
                Club.owner_id,
            )
            .join(Club, Club.id == Invite.club_id)
            .where(
                Invite.club_id == club_id,
                Invite.id == invite_id,
                Invite.revoked_at.is_(None),
                Club.state.in_(("active", "paused")),
                Invite.expires_at > NOW,
            )
        )
    ).one_or_none()
    if invite is None:
        raise invite_unknown()
    return invite


async def _judge(tx: Reader, invite: Row[Any], person: Row[Any]) -> None:
    if invite.kind == InviteKind.AGENT:
        raise NotAllowed(
            "invite_for_agents", "This invitation is for a program.", advice="Give it to whoever runs that."
        )
    if invite.invited_by == person.id:
        raise NotAllowed(
            "invite_of_ones_own",
            "You made this invitation, and nobody lets themselves in.",
            advice="Send it to the person it is for.",
        )
    if invite.owner_id == person.id:
        raise Conflict("owner_holds_all", "You own this club, so you hold every permission there.")
    if not _is_bound_to(invite, person):
        raise NotAllowed(
            "invite_for_another",
            "This invitation is for another address.",
            advice="Sign in with a link that was mailed to the address it was sent to.",
        )
    handed = await handed_on(tx, invite.club_id, invite.invited_by, invite.role_ids)
    if handed != frozenset(invite.role_ids):
        raise invite_unknown()
    if handed <= await held_roles(tx, invite.club_id, person.id):
        raise Conflict("roles_held", "You have all the roles of this invitation already.")


def _is_bound_to(invite: Row[Any], person: Row[Any]) -> bool:
    if invite.email is None:
        return True
    return person.email_verified_at is not None and invite.email.lower() == person.email.lower()


async def _ask(
    db: Database, tx: Transaction, invite: Row[Any], person: Row[Any]
) -> tuple[UUID, RequestStatus]:
    """The request that now waits: a new one, or the one of theirs that waits already, untouched (ACC-12)."""
    email = person.email if person.email_verified_at is not None else None
    mine, email = await waiting_request(tx, invite.club_id, person.id, email)
    if mine is not None:
        await mark_accepted(tx, invite.club_id, invite.id, person.id, mine)
        return mine, RequestStatus.PENDING
    subject = PersonSubject(person.id, email)
    return await record_join_request(db, invite.club_id, invite.id, subject), RequestStatus.PENDING


async def waiting_request(
    tx: Reader, club_id: UUID, person_id: UUID, email: str | None
) -> tuple[UUID | None, str | None]:
    """The request of this person that waits: one that they made, or that their verified address alone made. With it
    the address that a new one may carry.

    Where somebody else asked who had the address before them, that is null and theirs says nothing of it: a club has
    one waiting request an address (ACC-15).
    """
    same = or_(JoinRequest.person_id == person_id, func.lower(JoinRequest.email) == func.lower(email))
    found = await tx.execute(
        select(JoinRequest.id, JoinRequest.person_id).where(
            JoinRequest.club_id == club_id,
            JoinRequest.status == "pending_approval",
            JoinRequest.subject_kind == "person",
            same,
        )
    )
    waiting = {row.person_id: row.id for row in found.all()}
    return waiting.get(person_id) or waiting.get(None), None if waiting else email


async def _replay(db: Database, actor: Actor, invite: Row[Any], made: Row[Any]) -> Acceptance:
    """The same person again (a lost answer, a second press): the same answer. It is a sign of life where this
    invite made the request; one that was only found waiting is left untouched, as by the first time (ACC-12).
    """
    if made.id is None:
        raise invite_unknown()
    status = RequestStatus(made.status)
    if status is RequestStatus.PENDING and made.invite_id == invite.id:
        await write_join_request_change(db, actor, invite.club_id, made.id, Activity())
    return Acceptance(invite.club_id, made.id, status)


async def request_of(tx: Reader, club_id: UUID, invite_id: UUID, person_id: UUID) -> Row[Any] | None:
    """What this person's use of this invite led to, or none if they did not use it. Its ``id`` is null when the
    request was deleted since."""
    found = await tx.execute(
        select(JoinRequest.id, JoinRequest.invite_id, JoinRequest.status, JoinRequest.decision_note)
        .select_from(InviteUse)
        .outerjoin(
            JoinRequest,
            (JoinRequest.club_id == InviteUse.club_id) & (JoinRequest.id == InviteUse.request_id),
        )
        .where(
            InviteUse.club_id == club_id, InviteUse.invite_id == invite_id, InviteUse.person_id == person_id
        )
    )
    return found.one_or_none()
