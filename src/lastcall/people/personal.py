"""What this room (and the mail it sends) keeps about a person, for how long, and how it goes when they are erased."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import Rule, keep
from lastcall.people.personal_data import PersonalData, holds
from lastcall.people.sessions import end_all_sessions


async def _sessions(db: Database, tx: Transaction, person_id: UUID) -> None:
    # Ended first: whoever holds a stream open for one is told by that.
    await end_all_sessions(db, person_id)
    await _delete(tx, person_id, "sessions")


async def _links(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(
        text(
            "delete from sign_in_links l using people p"
            " where p.id = :person and (l.person_id = p.id or lower(l.email) = lower(p.email))"
        ),
        {"person": person_id},
    )


async def _ways_in(_: Database, tx: Transaction, person_id: UUID) -> None:
    await _delete(tx, person_id, "sign_in_flows", "passkeys", "identities", "api_tokens")


async def _preferences(_: Database, tx: Transaction, person_id: UUID) -> None:
    await _delete(tx, person_id, "mail_preferences")


async def _mail(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(
        text(
            "delete from outgoing_mail m using people p"
            " where p.id = :person and lower(m.address) = lower(p.email)"
        ),
        {"person": person_id},
    )


async def _audit(_: Database, tx: Transaction, person_id: UUID) -> None:
    """That something was done stays, and to which id; what it said about the person goes."""
    await tx.execute(
        text("update audit_log set details = '{}' where subject = :subject and details <> '{}'"),
        {"subject": str(person_id)},
    )


async def _delete(tx: Transaction, person_id: UUID, *tables: str) -> None:
    for table in tables:
        await tx.execute(text(f"delete from {table} where person_id = :person"), {"person": person_id})  # noqa: S608


SOURCES = (
    PersonalData(
        "profile",
        ("people.id",),
        "select id::text as k, id, email, email_verified_at, display_name, is_operator, blocked_at, created_at"
        " from people where id = :person",
    ),
    PersonalData(
        "session",
        ("sessions.person_id",),
        "select id::text as k, user_agent, signed_in_by, created_at, authenticated_at, last_seen_at, expires_at,"
        " revoked_at from sessions where person_id = :person",
        _sessions,
    ),
    PersonalData(
        "sign-in link",
        ("sign_in_links.person_id",),
        "select id::text as k, purpose, email, created_at, expires_at, used_at"
        " from sign_in_links where person_id = :person",
        _links,
    ),
    PersonalData(
        "sign-in under way",
        ("sign_in_flows.person_id",),
        "select id::text as k, kind, purpose, provider, created_at, expires_at, used_at"
        " from sign_in_flows where person_id = :person",
        _ways_in,
    ),
    PersonalData(
        "passkey",
        ("passkeys.person_id",),
        "select id::text as k, name, transports, is_backed_up, created_at, last_used_at"
        " from passkeys where person_id = :person",
    ),
    PersonalData(
        "account at a provider",
        ("identities.person_id",),
        "select id::text as k, provider, issuer, subject, label, created_at, last_used_at"
        " from identities where person_id = :person",
    ),
    PersonalData(
        "API token",
        ("api_tokens.person_id",),
        "select id::text as k, name, hint, scopes, created_at, expires_at, last_used_at, revoked_at"
        " from api_tokens where person_id = :person",
    ),
    PersonalData(
        "mail preference",
        ("mail_preferences.person_id",),
        "select topic as k, topic, is_on from mail_preferences where person_id = :person",
        _preferences,
    ),
    PersonalData(
        "mail",
        (),
        "select m.id::text as k, m.kind, m.address, m.state, m.created_at, m.sent_at, m.bounced_at"
        " from outgoing_mail m join people p on lower(m.address) = lower(p.email) where p.id = :person",
        _mail,
    ),
    PersonalData(
        "audit entry",
        ("audit_log.actor_person_id",),
        # Of an operator's acts on others it says that they were done, not to whom.
        "select id::text as k, action, created_at, actor_person_id = :person as done_by_you,"
        " case when actor_person_id = :person and subject = cast(:person as uuid)::text then details end as details"
        " from audit_log where actor_person_id = :person or subject = cast(:person as uuid)::text",
        _audit,
    ),
)

DAY = timedelta(days=1)
SIGN_IN, LEDGER = 30 * DAY, 90 * DAY

RULES = (
    Rule("sign-in links and codes, after they expired", "sign_in_links", "expires_at", SIGN_IN),
    Rule("sign-ins under way, after they expired", "sign_in_flows", "expires_at", SIGN_IN),
    Rule("sessions, after they ended", "sessions", "least(expires_at, revoked_at)", LEDGER),
    Rule(
        "API tokens, after they expired or were revoked",
        "api_tokens",
        "least(expires_at, revoked_at)",
        LEDGER,
    ),
    Rule("the record of mail that was sent", "outgoing_mail", "created_at", LEDGER),
    Rule("the audit of sign-ins and operators' acts", "audit_log", "created_at", 400 * DAY),
    Rule("counts of attempts, by a hash of who made them", "rate_limits", "ends_at", 30 * DAY),
)


def register() -> None:
    """Say what this room holds and how long. Registering twice is once."""
    holds(*SOURCES)
    keep(*RULES)
