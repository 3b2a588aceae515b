"""What the door of clubs keeps about a person: invites they made, had and used, and their join requests."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from lastcall.access.requests import Decided, RequestStatus, forget_address, write_join_request_change
from lastcall.access.tables import FORGOTTEN, INVITE_END
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.personal import ERASURE
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import Rule
from lastcall.people.personal_data import PersonalData

_CLUBS = text("""
    select id as club_id from clubs where owner_id = :person
    union select club_id from staff_assignments where person_id = :person
    union select club_id from join_requests where person_id = :person
    union select j.club_id from join_requests j join people p on lower(j.email) = lower(p.email)
        where p.id = :person and j.person_id is null
    union select club_id from invites where invited_by = :person
    union select i.club_id from invites i join people p on lower(i.email) = lower(p.email) where p.id = :person
    order by club_id
""")


async def hold_clubs(tx: Transaction, person_id: UUID) -> None:
    """Take the gates of every club in which something of the person is about to change, in order: nobody accepts,
    decides or invites there meanwhile.
    """
    for (club_id,) in (await tx.execute(_CLUBS, {"person": person_id})).all():
        await bump_gate(tx, club_id)


async def _invites(_: Database, tx: Transaction, person_id: UUID) -> None:
    """Close what the person made, and what was for their address: nobody else may come in by that."""
    await tx.execute(
        text(
            "update invites set revoked_at = lastcall_now()"
            " where invited_by = :person and revoked_at is null and accepted_at is null"
            " and expires_at > (select lastcall_now())"
        ),
        {"person": person_id},
    )
    await tx.execute(
        text(
            "update invites i set email = :forgotten, revoked_at = case when i.revoked_at is null"
            " and i.accepted_at is null and i.expires_at > (select lastcall_now()) then lastcall_now()"
            " else i.revoked_at end from people p where p.id = :person and lower(i.email) = lower(p.email)"
        ),
        {"person": person_id, "forgotten": FORGOTTEN},
    )


async def _requests(db: Database, tx: Transaction, person_id: UUID) -> None:
    waiting = await tx.execute(
        text(
            "select j.club_id, j.id from join_requests j join people p on p.id = :person"
            " where j.status = 'pending_approval'"
            " and (j.person_id = p.id or j.person_id is null and lower(j.email) = lower(p.email))"
            " order by j.club_id, j.id"
        ),
        {"person": person_id},
    )
    for row in waiting.all():
        withdrawn = Decided(RequestStatus.WITHDRAWN)
        await write_join_request_change(db, ERASURE, row.club_id, row.id, withdrawn)
    await forget_address(tx, person_id)


async def _slack(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(text("delete from slack_people where person_id = :person"), {"person": person_id})


SOURCES = (
    PersonalData(
        "invitation you made",
        ("invites.invited_by",),
        "select i.id::text as k, c.slug as club, i.kind, i.note, i.created_at, i.expires_at, i.revoked_at,"
        " i.accepted_at from invites i join clubs c on c.id = i.club_id where i.invited_by = :person",
        _invites,
    ),
    PersonalData(
        "invitation you used",
        ("invite_uses.person_id",),
        "select u.id::text as k, c.slug as club, u.used_at"
        " from invite_uses u join clubs c on c.id = u.club_id where u.person_id = :person",
        kept="The club's record of who came in, by id.",
    ),
    PersonalData(
        "join request",
        ("join_requests.person_id",),
        "select j.id::text as k, c.slug as club, j.email, j.status, j.activity_at, j.created_at, j.decided_at,"
        " j.decision_note from join_requests j join clubs c on c.id = j.club_id where j.person_id = :person",
        _requests,
    ),
    PersonalData(
        "join request you decided",
        ("join_requests.decided_by",),
        "select j.id::text as k, c.slug as club, j.status, j.decided_at, j.decision_note"
        " from join_requests j join clubs c on c.id = j.club_id where j.decided_by = :person",
        kept="The club's record of who decided, by id.",
    ),
    PersonalData(
        "Slack account linked with you",
        ("slack_people.person_id",),
        "select s.id::text as k, c.slug as club, s.slack_user_id, s.linked_at"
        " from slack_people s join clubs c on c.id = s.club_id where s.person_id = :person",
        _slack,
    ),
    PersonalData(
        "Slack workspace you connected",
        ("slack_installations.installed_by",),
        "select s.id::text as k, c.slug as club, s.team_name, s.installed_at"
        " from slack_installations s join clubs c on c.id = s.club_id where s.installed_by = :person",
        kept="The club's record of who connected it, by id.",
    ),
    PersonalData(
        "agent you answer for",
        ("agents.responsible_id",),
        "select a.id::text as k, c.slug as club, a.name, a.status, a.created_at"
        " from agents a join clubs c on c.id = a.club_id where a.responsible_id = :person",
        kept="The club's record of who answers for an agent, by id.",
    ),
)

RULES = (
    Rule(
        "the Slack account in a link that was sent there, after it expired",
        "slack_links",
        "expires_at",
        timedelta(days=30),
    ),
    Rule(
        "the address an invitation was for, after it was used, revoked or expired",
        "invites",
        INVITE_END,
        timedelta(days=30),
        where=f"email is not null and email <> '{FORGOTTEN}'",
        forget=f"email = '{FORGOTTEN}'",
    ),
    Rule(
        "the address in a join request, after it was decided",
        "join_requests",
        "decided_at",
        timedelta(days=30),
        where=f"email is not null and email <> '{FORGOTTEN}'",
        # A request of an address alone must go on saying that somebody asked.
        forget=f"email = case when person_id is null then '{FORGOTTEN}' end",
    ),
)
