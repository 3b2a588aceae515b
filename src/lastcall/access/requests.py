"""How join requests are written: every insert and every change goes through here (ACC-19).

Each is one small transaction around its statement, together with the listeners that follow from it; it
joins the caller's when there is one. Membership, provider calls and all else stay outside of it (ACC-10).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypedDict
from uuid import UUID

from sqlalchemy import ColumnElement, case, delete, func, insert, null, select, update
from sqlalchemy.exc import IntegrityError

from lastcall.access.listeners import join_request_coming, join_requests_changed, join_requests_going
from lastcall.access.policy import join_request_unknown
from lastcall.access.tables import FORGOTTEN, Invite, InviteUse, JoinRequest
from lastcall.clubs.activity import System, log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotFound
from lastcall.names import valid_name, valid_note
from lastcall.people.actor import Actor
from lastcall.people.tables import Person

TOPIC = "join_requests"  # of the hints for live pages
INVITE = System("invite")
AGENT_NAME_LENGTH = 120  # characters
AGENT_DESCRIPTION_LENGTH = 500  # characters


class RequestStatus(StrEnum):
    """Where a join request stands; all but the first are final."""

    PENDING = "pending_approval"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class PersonSubject:
    """A human who asks: by account, by address, or both."""

    person_id: UUID | None
    email: str | None


@dataclass(frozen=True)
class AgentSubject:
    """A program that asks, under the name it gave itself and with what it says of itself. ``claim_hash`` is the hash
    of the secret with which it will claim its key, once it is let in."""

    name: str
    description: str | None = None
    claim_hash: bytes | None = None


@dataclass(frozen=True)
class Decided:
    """The request leaves ``pending_approval`` for good, for one of the other three.

    ``by`` is the person whose authority decided (null: the requester withdrew); ``note`` is what they said.
    """

    status: Literal[RequestStatus.APPROVED, RequestStatus.REJECTED, RequestStatus.WITHDRAWN]
    by: UUID | None = None
    note: str | None = None


@dataclass(frozen=True)
class Activity:
    """The requester did something: the activity time moves to the database's now, never back. An agent may say
    anew who it is (``agent``; a description that is left out stays)."""

    agent: AgentSubject | None = None


async def record_join_request(
    db: Database,
    club_id: UUID,
    invite_id: UUID,
    subject: PersonSubject | AgentSubject,
    *,
    activity_at: datetime | None = None,
) -> UUID:
    """Take a use of the invite and insert the pending request that it turns into; answers its id.

    Whether the invite is still open is for the flow that accepts it to judge. ``activity_at`` is for a
    request that was made earlier than now. Raises ``NotFound`` for an invite of another club and
    ``Conflict`` when the invite is used up, when that person used it already or when a request of the same
    person or address is still pending.
    """
    request_id = new_id()
    columns = _subject_columns(subject)
    async with db.transaction() as tx:
        number = await _take_use(tx, club_id, invite_id)
        activity_at = activity_at or await tx.scalar(select(NOW))
        await join_request_coming(tx, club_id, activity_at)
        values = {"club_id": club_id, "id": request_id, "invite_id": invite_id, "activity_at": activity_at}
        values |= columns | {"use_number": number}
        try:
            async with db.transaction() as inner:
                await inner.execute(insert(JoinRequest).values(values))
                await _note_use(inner, club_id, invite_id, number, columns.get("person_id"), request_id)
        except IntegrityError as error:
            raise _asked_already(error) from error
        await join_requests_changed(tx, club_id, [request_id])
        await log(tx, club_id, INVITE, "join.requested", "join_request", request_id)
        tx.publish(Hint(club_id, TOPIC))
    return request_id


async def mark_accepted(
    tx: Transaction, club_id: UUID, invite_id: UUID, person_id: UUID, request_id: UUID
) -> None:
    """Take a use of the invite for somebody whose request waits already, which is left untouched (ACC-12). This
    is no signal (ACC-13). Errors as for ``record_join_request``.
    """
    number = await _take_use(tx, club_id, invite_id)
    await _note_use(tx, club_id, invite_id, number, person_id, request_id)


IS_PENDING = JoinRequest.status == "pending_approval"
"""The compare of each compare-and-set: whoever comes second waits for the first's commit and finds this false."""

MAY_GO = JoinRequest.status != "approved"
"""What a delete that waited for a decision finds false when somebody was let in."""


async def write_join_request_change(
    db: Database, actor: Actor | System, club_id: UUID, request_id: UUID, change: Decided | Activity
) -> None:
    """Change a pending request and tell the listeners, in one small transaction.

    Raises ``Conflict`` when the request is no longer pending and ``NotFound`` when it is not in this club.
    Who may is the caller's question.
    """
    action, values = _written(change)
    async with db.transaction() as tx:
        changed = await tx.scalar(
            update(JoinRequest)
            .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id, IS_PENDING)
            .values(values)
            .returning(JoinRequest.id)
        )
        if changed is None:
            raise await _not_pending(tx, club_id, request_id)
        await join_requests_changed(tx, club_id, [request_id])
        await log(tx, club_id, actor, action, "join_request", request_id)
        tx.publish(Hint(club_id, TOPIC))


async def remove_join_request(db: Database, actor: Actor, club_id: UUID, request_id: UUID) -> None:
    """Delete a request that was not approved, and what hangs on it: its retention goes with it, and the listeners
    are told (ACC-16). Who may is the caller's question.

    Raises ``Conflict`` for an approved one, which is the record of who let somebody in, and ``NotFound`` when
    it is not in this club.
    """
    mine = (JoinRequest.club_id == club_id, JoinRequest.id == request_id)
    async with db.transaction() as tx:
        await join_requests_going(tx, club_id, [request_id])
        removed = await tx.scalar(delete(JoinRequest).where(*mine, MAY_GO).returning(JoinRequest.status))
        if removed is None:
            if await tx.scalar(select(JoinRequest.id).where(*mine)) is None:
                raise join_request_unknown()
            raise Conflict(
                "request_approved",
                "This request was approved and stays as the record of who let them in.",
                advice="Take the roles away on the Staff page, or block the agent.",
                fresh=RequestStatus.APPROVED,
            )
        await log(tx, club_id, actor, "join.deleted", "join_request", request_id, {"status": removed})
        tx.publish(Hint(club_id, TOPIC))


class Claim(TypedDict, total=False):
    """The part of an agent's request that says what it became and how it gets its first key."""

    agent_id: UUID
    claim_secret_hash: bytes | None
    claim_expires_at: ColumnElement[datetime]
    claimed_at: ColumnElement[datetime]


async def write_claim(
    tx: Transaction, club_id: UUID, which: ColumnElement[bool], claim: Claim
) -> UUID | None:
    """Write the claim of the one request of the club that ``which`` names; answers its id, or none. Nothing of it is a
    fact of the candidate rule, so this is no signal (ACC-11). Who may is the caller's question."""
    written: UUID | None = await tx.scalar(
        update(JoinRequest)
        .where(JoinRequest.club_id == club_id, which)
        .values(**claim)
        .returning(JoinRequest.id)
    )
    return written


async def forget_address(tx: Transaction, person_id: UUID) -> None:
    """Take a person's address out of all their requests. It is no fact of the candidate rule, so no signal."""
    await tx.execute(
        update(JoinRequest)
        .where(JoinRequest.person_id == person_id, JoinRequest.email.is_not(None))
        .values(email=None)
    )
    theirs = select(func.lower(Person.email)).where(Person.id == person_id).scalar_subquery()
    await tx.execute(
        update(JoinRequest)
        .where(JoinRequest.person_id.is_(None), func.lower(JoinRequest.email) == theirs)
        .values(email=FORGOTTEN)
    )


def _written(change: Decided | Activity) -> tuple[str, dict[str, Any]]:
    match change:
        case Decided(status=status, by=by, note=note):
            decided = {"status": status, "decided_at": NOW, "decided_by": by, "decision_note": note}
            return f"join.{status}", decided
        case Activity(agent=agent):
            said = {} if agent is None else _said(agent)
            return "join.activity", said | {"activity_at": func.greatest(JoinRequest.activity_at, NOW)}


def _subject_columns(subject: PersonSubject | AgentSubject) -> dict[str, Any]:
    match subject:
        case PersonSubject(person_id=person_id, email=email):
            return {"subject_kind": "person", "person_id": person_id, "email": email}
        case AgentSubject(claim_hash=claim_hash):
            return {"subject_kind": "agent", "claim_secret_hash": claim_hash} | _said(subject)


def _said(agent: AgentSubject) -> dict[str, str]:
    name = valid_name(agent.name, "agent_name", most=AGENT_NAME_LENGTH, what="The agent's name")
    description = valid_note(agent.description, most=AGENT_DESCRIPTION_LENGTH)
    return {"agent_name": name} | ({} if description is None else {"agent_description": description})


HAS_ROOM = Invite.uses < Invite.max_uses
"""Of two acceptances of the last use the second waits for the first's commit and then finds this false."""


async def _take_use(tx: Transaction, club_id: UUID, invite_id: UUID) -> int:
    """Count one use of the invite, and call it accepted with the last; answers the use's number."""
    mine = (Invite.club_id == club_id, Invite.id == invite_id)
    is_last = Invite.uses + 1 == Invite.max_uses
    number: int | None = await tx.scalar(
        update(Invite)
        .where(*mine, HAS_ROOM)
        .values(uses=Invite.uses + 1, accepted_at=case((is_last, NOW), else_=null()))
        .returning(Invite.uses)
    )
    if number is None:
        if await tx.scalar(select(Invite.id).where(*mine)) is None:
            raise NotFound("invite_unknown", "There is no such invite.", advice="Ask for a new one.")
        raise Conflict("invite_used", "This invite has been used.", advice="Ask for a new one.")
    return number


async def _note_use(
    tx: Transaction, club_id: UUID, invite_id: UUID, number: int, person_id: UUID | None, request_id: UUID
) -> None:
    use = {"invite_id": invite_id, "number": number, "person_id": person_id, "request_id": request_id}
    await tx.execute(insert(InviteUse).values(club_id=club_id, id=new_id(), **use))


def _asked_already(error: IntegrityError) -> Conflict:
    said = str(error.orig)
    if "invite_uses_person_key" in said:
        return Conflict("invite_used", "This person used this invite already.", advice="Make a new one.")
    if "join_requests_pending" not in said:
        raise error
    return Conflict(
        "request_pending",
        "A request of this person is waiting for an answer already.",
        advice="Wait until it is decided.",
    )


async def _not_pending(tx: Transaction, club_id: UUID, request_id: UUID) -> NotFound | Conflict:
    status = await tx.scalar(
        select(JoinRequest.status).where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
    )
    if status is None:
        return join_request_unknown()
    return Conflict(
        "request_decided", f"This request is {status} already.", advice="Load it again.", fresh=status
    )
