"""Ways to sign in without mail: passkeys, identities at providers, and the flows that are under way."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base
from lastcall.people.tables import DATABASE_NOW, TOKEN_HASH_BYTES


class Passkey(Base):
    """A public key of one person. What signs with it never leaves their device or their key store."""

    __tablename__ = "passkeys"
    __table_args__ = (CheckConstraint("sign_count >= 0", name="sign_count"), Index(None, "person_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    credential_id: Mapped[bytes] = mapped_column(unique=True)
    public_key: Mapped[bytes]
    sign_count: Mapped[int] = mapped_column(BigInteger)
    """How often the authenticator says it signed; always 0 for passkeys that are kept in step over devices."""
    name: Mapped[str]
    transports: Mapped[list[str]] = mapped_column(ARRAY(Text()))
    is_backed_up: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    last_used_at: Mapped[datetime | None]


class Identity(Base):
    """An account at a provider that signs one person in. ``subject`` is the provider's own id of it; names
    and mail addresses there can change hands, so they identify nobody.
    """

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"), Index(None, "person_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    provider: Mapped[str]
    """The name in our settings through which it was linked."""
    issuer: Mapped[str]
    subject: Mapped[str]
    label: Mapped[str]
    """What the provider called the account when it was last used; shown to its own person alone."""
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    last_used_at: Mapped[datetime | None]


class SignInFlow(Base):
    """One use of a passkey or a provider that a browser began. It answers to that browser, once."""

    __tablename__ = "sign_in_flows"
    __table_args__ = (
        CheckConstraint("kind in ('passkey', 'provider')", name="kind"),
        CheckConstraint("(kind = 'provider') = (provider is not null)", name="provider"),
        CheckConstraint("purpose in ('sign_in', 'add', 'step_up')", name="purpose"),
        CheckConstraint("(purpose = 'sign_in') = (person_id is null)", name="person"),
        CheckConstraint(f"octet_length(state_hash) = {TOKEN_HASH_BYTES}", name="state_hash_length"),
        CheckConstraint(f"octet_length(browser_hash) = {TOKEN_HASH_BYTES}", name="browser_hash_length"),
        Index(None, "person_id"),
        Index(None, "expires_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    purpose: Mapped[str]
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    """Who was signed in when it began, and must still be."""
    provider: Mapped[str | None]
    state_hash: Mapped[bytes] = mapped_column(unique=True)
    browser_hash: Mapped[bytes]
    next: Mapped[str] = mapped_column(server_default=text("'/'"))
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
