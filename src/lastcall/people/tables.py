"""People, sign-in links, sessions, API tokens and the audit log: shared tables, as a person may work for
several clubs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base

DATABASE_NOW = text("lastcall_now()")
TOKEN_HASH_BYTES = 32  # SHA-256


def _one_of(column: str, *values: str) -> str:
    return f"{column} in ({', '.join(repr(value) for value in values)})"


class Person(Base):
    """A human who can sign in. A blocked person has no authority anywhere, whatever roles they hold; an erased
    one is blocked for good."""

    __tablename__ = "people"
    __table_args__ = (
        CheckConstraint("erased_at is null or blocked_at is not null", name="erased_is_blocked"),
        Index("people_lower_email_key", func.lower(text("email")), unique=True),
        Index(None, "created_at", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    email_verified_at: Mapped[datetime | None]
    display_name: Mapped[str]
    is_operator: Mapped[bool] = mapped_column(server_default=text("false"))
    blocked_at: Mapped[datetime | None]
    erased_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class SignInLink(Base):
    """A link, and the code that goes with it, that does one thing once for one person.

    Only hashes are kept. One that was mailed is bound to the browser that asked for it; one from the command
    line is not. Without ``person_id`` it makes the person with ``email`` when it is used: only whoever reads
    that mail can. For ``purpose`` *email*, ``email`` is the address that shall become theirs.
    """

    __tablename__ = "sign_in_links"
    __table_args__ = (
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        CheckConstraint(_one_of("purpose", "sign_in", "step_up", "email"), name="purpose"),
        CheckConstraint(
            "case when purpose = 'sign_in' then num_nonnulls(person_id, email) = 1"
            " when purpose = 'email' then num_nonnulls(person_id, email) = 2"
            " else person_id is not null and email is null end",
            name="for_whom",
        ),
        CheckConstraint("(browser_hash is null) = (code_hash is null)", name="code_has_browser"),
        CheckConstraint("attempts >= 0", name="attempts"),
        Index(None, "person_id"),
        Index(None, "expires_at"),
        Index(None, "browser_hash", postgresql_where=text("used_at is null")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    email: Mapped[str | None]
    purpose: Mapped[str] = mapped_column(server_default=text("'sign_in'"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    browser_hash: Mapped[bytes | None]
    code_hash: Mapped[bytes | None]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SignInSession(Base):
    """A browser that is signed in. Only the hash of its token is kept.

    ``authenticated_at`` is when the person last showed here that it is them; ``last_seen_at`` is written at
    most every few minutes.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        CheckConstraint(
            _one_of("signed_in_by", "link", "code", "passkey", "provider", "command line"),
            name="signed_in_by",
        ),
        Index(None, "person_id"),
        Index("sessions_end_idx", text("least(expires_at, revoked_at)")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    user_agent: Mapped[str] = mapped_column(server_default=text("''"))
    signed_in_by: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    authenticated_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    last_seen_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class ApiToken(Base):
    """A program's way in as one person, within its scopes. Only the hash is kept, and the few first characters
    by which its person knows it again."""

    __tablename__ = "api_tokens"
    __table_args__ = (
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        CheckConstraint("cardinality(scopes) > 0", name="scopes_not_empty"),
        CheckConstraint("expires_at <= created_at + interval '8784 hours'", name="at_most_a_year"),
        Index(None, "person_id"),
        Index("api_tokens_end_idx", text("least(expires_at, revoked_at)")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    name: Mapped[str]
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    hint: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text()))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class MailPreference(Base):
    """Whether a person wants mail about a topic; without a row the topic's own default counts."""

    __tablename__ = "mail_preferences"

    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    is_on: Mapped[bool]


class AuditEntry(Base):
    """One sign-in or one act of an operator. No actor means the command line of the host."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index(None, "created_at", "id"),
        Index(None, "actor_person_id", "created_at", "id"),
        Index(None, "subject", "created_at", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    actor_person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"))
    action: Mapped[str]
    subject: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
