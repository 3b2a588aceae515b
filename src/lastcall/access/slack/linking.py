"""From a command in Slack to somebody who is known here: the private link, asking for access, and being linked.

Every change holds the club's gate first, then the person's turn at this door (an advisory lock), then the link's row;
only after that anything is judged. Slack itself is asked nothing here: the link goes out in the answer to its request.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_once

from lastcall.access.acceptance import waiting_request
from lastcall.access.invites import INVITE_DIRECTORY
from lastcall.access.requests import PersonSubject, record_join_request
from lastcall.access.slack.tables import SlackInstallation, SlackLink, SlackPerson
from lastcall.access.tables import Invite
from lastcall.clubs.activity import log
from lastcall.clubs.gates import hold_gate
from lastcall.clubs.policy import standing
from lastcall.clubs.tables import Club
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound, NotSignedIn
from lastcall.people.actor import Actor
from lastcall.people.data_retention import data_written
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person
from lastcall.people.tokens import new_token, token_hash

LINK_LIFE = timedelta(days=1)
"""Long enough to ask, be let in and open it again; the command gives a new one at any time."""
TEAM_DIRECTORY = "slack_team"
NAME_LENGTH = 80  # characters of a name in Slack that are kept


@dataclass(frozen=True)
class Issued:
    """A link for one sender. The token is shown this once and stored nowhere."""

    club_name: str
    token: str


@dataclass(frozen=True)
class Known:
    """The sender is linked already."""

    club_name: str
    club_slug: str


@dataclass(frozen=True)
class LinkPreview:
    """A link as whoever opens it sees it. ``is_linked`` says that this very person was linked by it or before;
    ``request`` is their waiting request."""

    club_id: UUID
    club_name: str
    club_slug: str
    team_name: str
    slack_name: str
    is_staff: bool
    is_waiting: bool
    is_linked: bool
    expires_at: datetime


class Asked(StrEnum):
    """What somebody who asked has."""

    MEMBER = "member"
    PENDING = "pending_approval"


async def issue_link(
    db: Database, team_id: str, slack_user_id: str, slack_name: str, request_hash: bytes
) -> Issued | Known:
    """Answer a signed sender: who they are here, or a link by which to say so.

    ``request_hash`` stands for the signed request. Raises ``NotFound`` for a workspace that no open club connected and
    ``Conflict`` for a request that was answered already.
    """
    async with db.transaction(outermost=True) as tx:
        club = await _club_of_team(tx, team_id)
        if await tx.scalar(
            select(SlackPerson.id).where(
                SlackPerson.club_id == club.id, SlackPerson.slack_user_id == slack_user_id
            )
        ):
            return Known(club.name, club.slug)
        mine = (SlackLink.club_id == club.id, SlackLink.slack_user_id == slack_user_id)
        still_open = (SlackLink.used_at.is_(None), SlackLink.revoked_at.is_(None))
        await tx.execute(update(SlackLink).where(*mine, *still_open).values(revoked_at=NOW))
        token = f"{encode_id(club.id)}.{new_token()}"
        values = {
            "club_id": club.id,
            "id": new_id(),
            "installation_id": club.installation_id,
            "slack_user_id": slack_user_id,
            "slack_name": slack_name[:NAME_LENGTH] or slack_user_id,
            "token_hash": token_hash(token),
            "request_hash": request_hash,
            "expires_at": NOW + LINK_LIFE,
        }
        made = await tx.scalar(
            insert_once(SlackLink).values(values).on_conflict_do_nothing().returning(SlackLink.id)
        )
        if made is None:
            raise Conflict(
                "slack_answered", "This request was answered already.", advice="Send the command again."
            )
        data_written(tx)
    return Issued(club.name, token)


async def preview_link(tx: Reader, token: str, viewer: Actor | None) -> LinkPreview:
    """What the link leads to, for whoever opened it; opening it uses nothing up. ``NotFound`` for one that cannot be
    used, however that came, but for the person whom it linked."""
    club_id = _club_of(token)
    link = await _read(tx, club_id, token)
    person_id = viewer.person_id if viewer else None
    linked = person_id is not None and await _linked(tx, club_id, link.slack_user_id) == person_id
    if not link.is_open and not linked:
        raise link_unknown()
    is_staff = person_id is not None and (await standing(tx, club_id, person_id)).is_staff
    waiting = None
    if person_id is not None and not is_staff:
        waiting, _ = await waiting_request(tx, club_id, person_id, await _verified_email(tx, person_id))
    return LinkPreview(
        club_id=club_id,
        club_name=link.name,
        club_slug=link.slug,
        team_name=link.team_name,
        slack_name=link.slack_name,
        is_staff=is_staff,
        is_waiting=waiting is not None,
        is_linked=linked,
        expires_at=link.expires_at,
    )


async def request_access(db: Database, actor: Actor, token: str) -> Asked:
    """Ask to be let in, by a link from Slack. Whoever is on the staff is answered ``MEMBER``. A request of the same
    person or address that waits already is found and left untouched (ACC-05); else one is made, behind an invite
    that is used up and expired from its birth. Opens its own transaction.

    Raises ``NotFound`` for a link that cannot be used.
    """
    actor.require_scope(Scope.ACCESS)
    async with db.transaction(outermost=True) as tx:
        club_id, link = await _hold(tx, actor, token)
        email = await _lock_person(tx, actor)
        if not link.is_open:
            raise link_unknown()
        if (await standing(tx, club_id, actor.person_id)).is_staff:
            return Asked.MEMBER
        waiting, email = await waiting_request(tx, club_id, actor.person_id, email)
        if waiting is None:
            invite_id = await _make_invite(tx, club_id, link)
            await record_join_request(db, club_id, invite_id, PersonSubject(actor.person_id, email))
    return Asked.PENDING


async def confirm_link(db: Database, actor: Actor, token: str) -> None:
    """Say that this account in Slack is oneself, which uses the link up; twice by the same person is once.

    For members of the staff: ``NotAllowed`` for others. ``Conflict`` when the account in Slack is somebody else here;
    ``NotFound`` for a link that cannot be used. An earlier account of the same person is let go.
    """
    actor.require_scope(Scope.ACCESS)
    async with db.transaction(outermost=True) as tx:
        club_id, link = await _hold(tx, actor, token)
        await _lock_person(tx, actor)
        if await _linked(tx, club_id, link.slack_user_id) == actor.person_id:
            return
        if not link.is_open:
            raise link_unknown()
        if not (await standing(tx, club_id, actor.person_id)).is_staff:
            raise NotAllowed(
                "not_on_staff", "You are not on the staff of this club yet.", advice="Ask for access first."
            )
        await tx.execute(
            delete(SlackPerson).where(
                SlackPerson.club_id == club_id, SlackPerson.person_id == actor.person_id
            )
        )
        values = {"club_id": club_id, "id": new_id(), "installation_id": link.installation_id}
        values |= {"slack_user_id": link.slack_user_id, "person_id": actor.person_id}
        linked = await tx.scalar(
            insert_once(SlackPerson).values(values).on_conflict_do_nothing().returning(SlackPerson.id)
        )
        if linked is None:
            raise Conflict(
                "slack_linked",
                "This account in Slack is linked to somebody else here.",
                advice="Let them unlink it first.",
            )
        await tx.execute(
            update(SlackLink).where(SlackLink.club_id == club_id, SlackLink.id == link.id).values(used_at=NOW)
        )
        await log(tx, club_id, actor, "slack.linked", "person", actor.person_id)


async def unlink(db: Database, actor: Actor, club_id: UUID) -> None:
    """Let one's own account in the club's Slack go. Nothing happens without one."""
    actor.require_scope(Scope.ACCESS)
    async with db.transaction(outermost=True) as tx:
        gone = await tx.scalar(
            delete(SlackPerson)
            .where(SlackPerson.club_id == club_id, SlackPerson.person_id == actor.person_id)
            .returning(SlackPerson.id)
        )
        if gone is not None:
            await log(tx, club_id, actor, "slack.unlinked", "person", actor.person_id)


def link_unknown() -> NotFound:
    """The one answer for a link that was never made, was used, was replaced or has expired."""
    return NotFound(
        "slack_link_unknown",
        "This link from Slack cannot be used.",
        advice="It was used, replaced or is too old. Send the command in Slack again.",
    )


async def _club_of_team(tx: Transaction, team_id: str) -> Row[Any]:
    """The open club that connected the workspace, held so that it is not taken out meanwhile."""
    found = await tx.execute(
        select(Club.id, Club.name, Club.slug, SlackInstallation.id.label("installation_id"))
        .select_from(Directory)
        .join(SlackInstallation, SlackInstallation.club_id == Directory.club_id)
        .join(Club, Club.id == Directory.club_id)
        .where(
            Directory.kind == TEAM_DIRECTORY, Directory.key == team_id, Club.state.in_(("active", "paused"))
        )
        .with_for_update(read=True, of=SlackInstallation)
    )
    club = found.one_or_none()
    if club is None:
        raise NotFound(
            "slack_team_unknown",
            "No club is connected to this workspace.",
            advice="Somebody of the club connects it on the Slack page there.",
        )
    return club


def _club_of(token: str) -> UUID:
    try:
        return decode_id(token.partition(".")[0])
    except (Invalid, ValueError) as error:
        raise link_unknown() from error


_TAKE_TURN = text("select pg_advisory_xact_lock(hashtextextended(:turn, 0))")


async def take_turn(tx: Transaction, club_id: UUID, person_id: UUID) -> None:
    """Of two requests of one person at one club the second waits here for the first's end, and then finds it."""
    await tx.execute(_TAKE_TURN, {"turn": f"slack access {club_id} {person_id}"})


async def lock_link(tx: Transaction, club_id: UUID, token: str) -> None:
    """Whoever uses or revokes the link at the same time is waited for."""
    await tx.execute(
        select(SlackLink.id)
        .where(SlackLink.club_id == club_id, SlackLink.token_hash == token_hash(token))
        .with_for_update()
    )


async def _hold(tx: Transaction, actor: Actor, token: str) -> tuple[UUID, Row[Any]]:
    """The link under its lock, as it is after that. The workspace's row comes before it: whoever takes the app out
    holds that, and then the links."""
    club_id = _club_of(token)
    await hold_gate(tx, club_id)
    await take_turn(tx, club_id, actor.person_id)
    await _hold_workspace(tx, club_id)
    await lock_link(tx, club_id, token)
    return club_id, await _read(tx, club_id, token)


async def _hold_workspace(tx: Transaction, club_id: UUID) -> None:
    await tx.execute(
        select(SlackInstallation.id)
        .where(SlackInstallation.club_id == club_id)
        .with_for_update(read=True, key_share=True)
    )


async def _read(tx: Reader, club_id: UUID, token: str) -> Row[Any]:
    is_open = SlackLink.used_at.is_(None) & SlackLink.revoked_at.is_(None) & (SlackLink.expires_at > NOW)
    found = await tx.execute(
        select(
            SlackLink.id,
            SlackLink.installation_id,
            SlackLink.slack_user_id,
            SlackLink.slack_name,
            SlackLink.expires_at,
            is_open.label("is_open"),
            SlackInstallation.team_name,
            SlackInstallation.role_id,
            SlackInstallation.installed_by,
            Club.name,
            Club.slug,
        )
        .join(SlackInstallation, SlackInstallation.club_id == SlackLink.club_id)
        .join(Club, Club.id == SlackLink.club_id)
        .where(
            SlackLink.club_id == club_id,
            SlackLink.token_hash == token_hash(token),
            Club.state.in_(("active", "paused")),
        )
    )
    link = found.one_or_none()
    if link is None:
        raise link_unknown()
    return link


async def _lock_person(tx: Transaction, actor: Actor) -> str | None:
    """The person, held against being blocked or erased meanwhile; answers their address, if it is verified."""
    found = await tx.execute(
        select(Person.email, Person.email_verified_at)
        .where(Person.id == actor.person_id, Person.blocked_at.is_(None))
        .with_for_update(read=True)
    )
    person = found.one_or_none()
    if person is None:
        raise NotSignedIn("not_signed_in", "You are not signed in.", advice="Sign in again.")
    return person.email if person.email_verified_at is not None else None


async def _verified_email(tx: Reader, person_id: UUID) -> str | None:
    email: str | None = await tx.scalar(
        select(Person.email).where(Person.id == person_id, Person.email_verified_at.is_not(None))
    )
    return email


async def _linked(tx: Reader, club_id: UUID, slack_user_id: str) -> UUID | None:
    """Who that account in Slack is here."""
    found: UUID | None = await tx.scalar(
        select(SlackPerson.person_id).where(
            SlackPerson.club_id == club_id, SlackPerson.slack_user_id == slack_user_id
        )
    )
    return found


async def _make_invite(tx: Transaction, club_id: UUID, link: Row[Any]) -> UUID:
    """The invite that the request needs behind it: nobody knows its token, it is expired from birth, and the request
    that follows in this transaction uses it up."""
    invite_id, hashed = new_id(), token_hash(new_token())
    await tx.execute(insert(Directory).values(kind=INVITE_DIRECTORY, key=hashed.hex(), club_id=club_id))
    await tx.execute(
        insert(Invite).values(
            club_id=club_id,
            id=invite_id,
            kind="person",
            source="slack",
            token_hash=hashed,
            role_ids=[link.role_id],
            approves=False,
            invited_by=link.installed_by,
            expires_at=NOW,
        )
    )
    return invite_id
