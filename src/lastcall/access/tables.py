"""Invites and join requests."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
PENDING_PERSON = "status = 'pending_approval' and subject_kind = 'person'"
DUE_INDEX = "join_requests_archive_due_at_idx"
DUE_INDEX_WHERE = "status = 'pending_approval' and archive_due_at is not null"
TOKEN_HASH_BYTES = 32  # SHA-256
INVITE_END = "least(expires_at, revoked_at, accepted_at)"
"""When an invite is over; ``least`` passes over what is null."""
MOST_USES = 100  # acceptances of one invite
FORGOTTEN = "forgotten"
"""Stands for an address that must not be kept where the row must go on saying that there was one: of a request that
only an address made, and of an invite, which would let in anybody without it."""
INVITE_ADDRESS_INDEX = "invites_address_end_idx"


class Invite(TenantTable, Base):
    """A way in, for a person, an agent or either (``kind``), shown once as a token of which only the hash is
    kept; the directory keeps the hash unique over all clubs.

    Whether it is revoked, used up, expired or open is derived from its times, in that order. It may be accepted
    ``max_uses`` times; ``uses`` counts that, and ``accepted_at`` is when the last use was taken. ``role_ids`` are
    what a person is to hold and ``agent_grants`` the most that an agent may be given; ``email`` binds it to
    whoever has that address, verified. ``source`` is ``slack`` for one that only stands behind a request over
    Slack. ``approves`` lets the inviter's authority approve the request a person's
    acceptance makes; an agent's always waits.
    """

    __tablename__ = "invites"
    __table_args__ = (
        CheckConstraint("kind in ('person', 'agent', 'both')", name="kind"),
        CheckConstraint("source in ('staff', 'slack')", name="source"),
        CheckConstraint(f"octet_length(token_hash) = {TOKEN_HASH_BYTES}", name="token_hash_length"),
        CheckConstraint("not approves or (kind <> 'agent' and cardinality(role_ids) > 0)", name="approves"),
        CheckConstraint("kind <> 'person' or cardinality(agent_grants) = 0", name="agent_grants"),
        CheckConstraint(f"max_uses between 1 and {MOST_USES}", name="max_uses"),
        CheckConstraint("uses between 0 and max_uses", name="uses"),
        CheckConstraint("(accepted_at is null) = (uses < max_uses)", name="used_up"),
        CheckConstraint("email is null or max_uses = 1", name="email_once"),
        UniqueConstraint("club_id", "token_hash"),
        Index(None, "club_id", "created_at", "id"),
        Index(None, "invited_by"),
        Index("invites_lower_email_idx", text("lower(email)"), postgresql_where=text("email is not null")),
        # The addresses that are to be forgotten, by the time their invites ended.
        Index(
            INVITE_ADDRESS_INDEX,
            text(INVITE_END),
            "id",
            postgresql_where=text(f"email is not null and email <> '{FORGOTTEN}'"),
        ),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    kind: Mapped[str] = mapped_column(server_default=text("'person'"))
    source: Mapped[str] = mapped_column(server_default=text("'staff'"))
    token_hash: Mapped[bytes]
    role_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid), server_default=text("'{}'"))
    agent_grants: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    email: Mapped[str | None]
    approves: Mapped[bool] = mapped_column(server_default=text("false"))
    note: Mapped[str | None] = mapped_column(Text)
    invited_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    max_uses: Mapped[int] = mapped_column(server_default=text("1"))
    uses: Mapped[int] = mapped_column(server_default=text("0"))
    accepted_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class InviteUse(TenantTable, Base):
    """One acceptance of an invite, numbered from 1: by a person or, with ``person_id`` null, by an agent or an
    address alone.

    ``request_id`` is the join request that it led to: the one it made, or an earlier one of that person which
    waited already (ACC-12); null once that is deleted. A person uses an invite once, however often they press.
    """

    __tablename__ = "invite_uses"
    __table_args__ = (
        tenant_reference("invites", "invite_id", on_delete="cascade"),
        tenant_reference("join_requests", "request_id", on_delete="set null"),
        UniqueConstraint("club_id", "invite_id", "number"),
        CheckConstraint(f"number between 1 and {MOST_USES}", name="number"),
        Index(
            "invite_uses_person_key",
            "club_id",
            "invite_id",
            "person_id",
            unique=True,
            postgresql_where=text("person_id is not null"),
        ),
        Index(None, "person_id", postgresql_where=text("person_id is not null")),
        Index(None, "club_id", "request_id", postgresql_where=text("request_id is not null")),
    )

    invite_id: Mapped[UUID]
    number: Mapped[int]
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    request_id: Mapped[UUID | None]
    used_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class JoinRequest(TenantTable, Base):
    """Somebody wants in: a person (an account, an address, or both) or an agent.

    The composite reference keeps request and invite in one club (RET-01), the unique constraints keep one
    request an acceptance (``use_number``) and one pending request a person (ACC-15). ``activity_at`` is when the
    requester last did something; ``decided_by`` is null where the requester withdrew. ``archive_due_at`` is
    derived from the facts and written by ``decisions/`` alone; null means that nothing is scheduled.

    An agent's request carries the hash of a secret with which the agent, once approved (``agent_id``), claims its
    first key, once and until ``claim_expires_at``. None of that is a fact of the candidate rule (ACC-11).
    """

    __tablename__ = "join_requests"
    __table_args__ = (
        tenant_reference("invites", "invite_id", on_delete="cascade"),
        UniqueConstraint("club_id", "invite_id", "use_number"),
        CheckConstraint(f"use_number between 1 and {MOST_USES}", name="use_number"),
        CheckConstraint("agent_description is null or subject_kind = 'agent'", name="agent_description"),
        tenant_reference("agents", "agent_id"),
        CheckConstraint(
            "claim_secret_hash is null"
            f" or subject_kind = 'agent' and octet_length(claim_secret_hash) = {TOKEN_HASH_BYTES}",
            name="claim_secret",
        ),
        CheckConstraint(
            "case when agent_id is null then num_nonnulls(claim_expires_at, claimed_at) = 0"
            " else subject_kind = 'agent' and status = 'approved' and claim_expires_at is not null end",
            name="agent",
        ),
        CheckConstraint("status in ('pending_approval', 'approved', 'rejected', 'withdrawn')", name="status"),
        CheckConstraint(
            "case subject_kind"
            " when 'person' then agent_name is null and (person_id is not null or email is not null)"
            " when 'agent' then agent_name is not null and person_id is null and email is null"
            " else false end",
            name="subject",
        ),
        CheckConstraint(
            "case status when 'pending_approval' then num_nonnulls(decided_at, decided_by, decision_note) = 0"
            " else decided_at is not null end",
            name="decided",
        ),
        Index(
            "join_requests_pending_person_key",
            "club_id",
            "person_id",
            unique=True,
            postgresql_where=text(PENDING_PERSON),
        ),
        Index(
            "join_requests_pending_email_key",
            "club_id",
            text("lower(email)"),
            unique=True,
            postgresql_where=text(PENDING_PERSON),
        ),
        Index(
            "join_requests_agent_key",
            "club_id",
            "agent_id",
            unique=True,
            postgresql_where=text("agent_id is not null"),
        ),
        Index(None, "person_id", "club_id"),
        # The addresses that are to be forgotten.
        Index(
            "join_requests_address_end_idx",
            "decided_at",
            postgresql_where=text(f"email is not null and email <> '{FORGOTTEN}'"),
        ),
        # Everything that is due and nothing that is not (RET-05, RET-20); its order is the sweep's.
        Index(DUE_INDEX, "archive_due_at", "id", postgresql_where=text(DUE_INDEX_WHERE)),
        # What waits, in the order of the inbox; what is archived apart from it.
        Index(
            "join_requests_inbox_idx",
            "club_id",
            "is_archived",
            "activity_at",
            "id",
            postgresql_where=text("status = 'pending_approval'"),
        ),
    )

    invite_id: Mapped[UUID]
    use_number: Mapped[int] = mapped_column(server_default=text("1"))
    subject_kind: Mapped[str]
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    email: Mapped[str | None]
    agent_name: Mapped[str | None]
    agent_description: Mapped[str | None]
    agent_id: Mapped[UUID | None]
    claim_secret_hash: Mapped[bytes | None]
    claim_expires_at: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    status: Mapped[str] = mapped_column(server_default=text("'pending_approval'"))
    activity_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    archive_due_at: Mapped[datetime | None]
    is_archived: Mapped[bool] = mapped_column(server_default=text("false"))
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[UUID | None] = mapped_column(ForeignKey("people.id"))
    decision_note: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
