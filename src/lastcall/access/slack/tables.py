"""A club's Slack workspace, the links that its people were given, and who is who."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference

DATABASE_NOW = text("lastcall_now()")
HASH_BYTES = 32  # SHA-256


class SlackInstallation(TenantTable, Base):
    """The app in the one workspace of a club; the directory keeps a workspace in one club. ``token_sealed`` is the
    bot's token, encrypted with the key of the server's home; ``role_id`` is what people who ask for access over Slack
    are to hold, on the authority of ``installed_by`` or of whoever approves.
    """

    __tablename__ = "slack_installations"
    __table_args__ = (
        UniqueConstraint("club_id"),
        tenant_reference("staff_roles", "role_id"),
        Index(None, "installed_by"),
    )

    club_id: Mapped[UUID] = mapped_column(
        ForeignKey("clubs.id", ondelete="CASCADE"), primary_key=True, sort_order=-2
    )
    team_id: Mapped[str]
    team_name: Mapped[str]
    token_sealed: Mapped[bytes]
    role_id: Mapped[UUID]
    installed_by: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    installed_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)


class SlackLink(TenantTable, Base):
    """A private link that a sender in Slack was given, stored as a hash, and the receipt of the signed request that
    asked for it: the same request again makes no second link.

    Asking for access leaves it open, being linked uses it; a newer link of the same sender revokes it.
    """

    __tablename__ = "slack_links"
    __table_args__ = (
        tenant_reference("slack_installations", "installation_id", on_delete="cascade"),
        UniqueConstraint("club_id", "token_hash"),
        UniqueConstraint("club_id", "request_hash"),
        CheckConstraint(
            f"octet_length(token_hash) = {HASH_BYTES} and octet_length(request_hash) = {HASH_BYTES}",
            name="hash_length",
        ),
        Index(None, "club_id", "slack_user_id"),
        Index(None, "expires_at"),
    )

    installation_id: Mapped[UUID]
    slack_user_id: Mapped[str]
    slack_name: Mapped[str]
    token_hash: Mapped[bytes]
    request_hash: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class SlackPerson(TenantTable, Base):
    """Who somebody of the workspace is here. One account there is one person here, and the other way round."""

    __tablename__ = "slack_people"
    __table_args__ = (
        tenant_reference("slack_installations", "installation_id", on_delete="cascade"),
        UniqueConstraint("club_id", "slack_user_id"),
        UniqueConstraint("club_id", "person_id"),
        Index(None, "person_id"),
    )

    installation_id: Mapped[UUID]
    slack_user_id: Mapped[str]
    person_id: Mapped[UUID] = mapped_column(ForeignKey("people.id"))
    linked_at: Mapped[datetime] = mapped_column(server_default=DATABASE_NOW)
