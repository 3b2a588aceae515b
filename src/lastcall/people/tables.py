"""People, sign-in links, sessions and the audit log: shared tables, as a person may work for several
clubs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base

DATABASE_NOW = text("lastcall_now()")
TOKEN_HASH_BYTES = 32  # SHA-256


class Person(Base):
    """A human who can sign in. A blocked person has no authority anywhere, whatever roles they hold."""

    __tablename__ = "people"
    __table_args__ = (Index("people_lower_email_key", func.lower(text("email")), unique=True),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    display_name: Mapped[str]
    is_operator: Mapped[bool] = mapped_column(server_default=text("false"))
    blocked_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class SignInLink(Base):
    """A link that signs one person in once. Only the hash of its token is kept."""

    __tablename__ = "sign_in_links"
    __table_args__ = (
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        Index(None, "person_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class SignInSession(Base):
    """A browser that is signed in. Only the hash of its token is kept."""

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        Index(None, "person_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """One sign-in or one act of an operator. No actor means the command line of the host."""

    __tablename__ = "audit_log"
    __table_args__ = (Index(None, "created_at", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    actor_person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"))
    action: Mapped[str]
    subject: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'::jsonb"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
