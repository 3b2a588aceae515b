"""Tables of this room. Accounts, keys, collectors, allowances and the fleet are shared; the rest belongs to
a club."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.connections.states import AccountState, ConnectionState, Feature, GroupVisibility, JoinPolicy
from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.db.ids import new_id

FLEET_ALLOWANCE = 30
ACCOUNT_ALLOWANCE = 30
CONNECTION_ALLOWANCE = 4
"""Provider requests a minute unless an operator sets another number (BUD-08)."""
ALLOWANCE_MOST = 6000
"""The highest number an operator may set; VRChat's patience ends far below it."""

CAPACITY = 100
RESERVED_HEADROOM = 15
"""How many clubs an account serves at most, and how many of those places are not given out by themselves."""
WRITES_PER_DAY = 1000
"""Writes a day of an account that is grown; our own figure, VRChat names none."""
CAPACITY_MOST = 10_000
WRITES_MOST = 100_000

_ALLOWANCE_RANGE = f"requests_per_minute between 1 and {ALLOWANCE_MOST}"


def _one_of(column: str, values: type[StrEnum]) -> str:
    return f"{column} in ({', '.join(repr(value.value) for value in values)})"


class FleetSettings(Base):
    """One row: the switch over all accounts, and the allowance they share."""

    __tablename__ = "fleet_settings"
    __table_args__ = (
        CheckConstraint("id = 1", name="one_row"),
        CheckConstraint(_ALLOWANCE_RANGE, name="range"),
    )

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    kill_switch: Mapped[bool] = mapped_column(server_default=text("false"))
    requests_per_minute: Mapped[int] = mapped_column(server_default=text(str(FLEET_ALLOWANCE)))


class Account(Base):
    """A VRChat account made for this purpose. Its password and cookies live with its collector, never
    here.

    ``joined_on``: the day on which VRChat says it was made, as its collector reported; a young one writes less.
    """

    __tablename__ = "accounts"
    __table_args__ = (
        CheckConstraint(_one_of("state", AccountState), name="state"),
        CheckConstraint("state <> 'cooldown' or cooldown_until is not null", name="cooldown"),
        CheckConstraint(_ALLOWANCE_RANGE, name="range"),
        CheckConstraint(f"capacity between 1 and {CAPACITY_MOST}", name="capacity"),
        CheckConstraint("reserved_headroom between 0 and capacity", name="headroom"),
        CheckConstraint(f"writes_per_day between 1 and {WRITES_MOST}", name="writes"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=new_id)
    alias: Mapped[str] = mapped_column(unique=True)
    vrchat_user_id: Mapped[str] = mapped_column(unique=True)
    state: Mapped[str]
    kill_switch: Mapped[bool] = mapped_column(server_default=text("false"))
    requests_per_minute: Mapped[int] = mapped_column(server_default=text(str(ACCOUNT_ALLOWANCE)))
    credential_generation: Mapped[int] = mapped_column(server_default=text("0"))
    cooldown_until: Mapped[datetime | None]
    capacity: Mapped[int] = mapped_column(server_default=text(str(CAPACITY)))
    reserved_headroom: Mapped[int] = mapped_column(server_default=text(str(RESERVED_HEADROOM)))
    writes_per_day: Mapped[int] = mapped_column(server_default=text(str(WRITES_PER_DAY)))
    joined_on: Mapped[date | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    updated_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))


class WorkerKey(Base):
    """A key a collector signs in with, stored as SHA-256. Only the account's newest generation is good."""

    __tablename__ = "worker_keys"

    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    generation: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key_hash: Mapped[bytes] = mapped_column(BYTEA, unique=True)
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    revoked_at: Mapped[datetime | None]


class Collector(Base):
    """A collector process of an account, as its last hello described it. Presence is kept in memory, not
    here."""

    __tablename__ = "collectors"

    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    worker_id: Mapped[UUID] = mapped_column(primary_key=True)
    journal_id: Mapped[UUID]
    release: Mapped[str]
    last_hello_at: Mapped[datetime]


class AllowanceUse(Base):
    """What was granted in one scope: in its present calendar minute, and in the last 60 seconds.

    ``scope`` is ``fleet``, ``account:<id>`` or ``connection:<id>``. The two arrays run side by side: how
    much was granted, in slots of 100 ms each named by its end, so that a row never holds more than 600 of
    them. An account's row also counts the writes of its present day, by UTC.
    """

    __tablename__ = "allowances"
    __table_args__ = (
        CheckConstraint("cardinality(recent_until) = cardinality(recent_granted)", name="side_by_side"),
    )

    scope: Mapped[str] = mapped_column(primary_key=True)
    window_start: Mapped[datetime]
    granted: Mapped[int]
    recent_until: Mapped[list[datetime]] = mapped_column(
        ARRAY(TIMESTAMP(timezone=True)), server_default=text("'{}'")
    )
    recent_granted: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=text("'{}'"))
    writes_day: Mapped[date | None]
    writes: Mapped[int] = mapped_column(server_default=text("0"))


class Connection(TenantTable, Base):
    """A club's link to its group through one account.

    ``epoch`` is the moment of the connect and names it: work of an earlier epoch never crosses it.
    ``lease_generation`` is the highest fencing token given out. A club has one current connection; earlier
    ones stay, disconnected.

    ``next_look_at``: from then on a collector is wanted though there is no other work; null for never.
    ``waiting_since``: since when the same answer to "may the account come in" is waited for.
    ``last_attempt_at``: the newest lease; ``last_success_at``: when VRChat last answered what the account is to the
    group, and ``last_fault`` the code of what went wrong since. ``has_visitors``: somebody was in the group's instances
    at the last count, and ``telemetry_failures`` how often in a row such a count failed since.
    """

    __tablename__ = "connections"
    __table_args__ = (
        ForeignKeyConstraint(["club_id"], ["clubs.id"], ondelete="CASCADE"),
        CheckConstraint(_one_of("state", ConnectionState), name="state"),
        CheckConstraint(
            f"features <@ array[{', '.join(repr(feature.value) for feature in Feature)}]", name="features"
        ),
        CheckConstraint("(frozen_at is null) = (frozen_reason is null)", name="frozen"),
        CheckConstraint(_ALLOWANCE_RANGE, name="range"),
        CheckConstraint(_one_of("join_policy", JoinPolicy), name="join_policy"),
        CheckConstraint(_one_of("group_visibility", GroupVisibility), name="group_visibility"),
        Index(
            "connections_current_key",
            "club_id",
            unique=True,
            postgresql_where=text("state <> 'disconnected'"),
        ),
        Index("connections_account_idx", "account_id", postgresql_where=text("state <> 'disconnected'")),
    )

    group_id: Mapped[str]
    group_name: Mapped[str]
    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id"))
    state: Mapped[str]
    epoch: Mapped[datetime]
    features: Mapped[list[str]] = mapped_column(ARRAY(Text))
    kill_switch: Mapped[bool] = mapped_column(server_default=text("false"))
    requests_per_minute: Mapped[int] = mapped_column(server_default=text(str(CONNECTION_ALLOWANCE)))
    lease_generation: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    frozen_at: Mapped[datetime | None]
    frozen_reason: Mapped[str | None]
    consecutive_failures: Mapped[int] = mapped_column(server_default=text("0"))
    backoff_until: Mapped[datetime | None]
    join_policy: Mapped[str] = mapped_column(server_default=text(f"'{JoinPolicy.UNKNOWN}'"))
    group_visibility: Mapped[str] = mapped_column(server_default=text(f"'{GroupVisibility.UNKNOWN}'"))
    next_look_at: Mapped[datetime | None]
    waiting_since: Mapped[datetime | None]
    last_attempt_at: Mapped[datetime | None]
    last_success_at: Mapped[datetime | None]
    last_fault: Mapped[str | None]
    has_visitors: Mapped[bool] = mapped_column(server_default=text("false"))
    telemetry_failures: Mapped[int] = mapped_column(server_default=text("0"))
    disconnected_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    updated_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))


class ConnectionGate(Base):
    """The gate of one connection: authorize holds it FOR SHARE, whoever takes authority away raises it."""

    __tablename__ = "connection_gates"
    __table_args__ = (tenant_reference("connections", "connection_id", on_delete="cascade"),)

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    generation: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class Lease(Base):
    """The right of one worker to one connection. One row a connection: the newest lease, open or ended."""

    __tablename__ = "leases"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        Index("leases_open_idx", "expires_at", "connection_id", postgresql_where=text("released_at is null")),
    )

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id"))
    worker_id: Mapped[UUID]
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    claimed_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    released_at: Mapped[datetime | None]


class Evidence(Base):
    """What VRChat said of a subject, and when it was read. Newest only; old evidence is no evidence.

    ``own_member`` is the account's own membership: its subject is the account's VRChat user id, its body
    the wire's ``OwnMemberEvidence`` without the age. The others are what ``reads/`` keeps of what somebody had read, as
    long as the read itself: ``bans`` is one page of the group's bans, its subject says which, its body is
    ``{"bannedUserIds": […]}``.
    """

    __tablename__ = "evidence"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        CheckConstraint(
            "kind in ('own_member', 'bans', 'requests', 'invites', 'member', 'posts', 'instances')",
            name="kind",
        ),
    )

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    epoch: Mapped[datetime]
    body: Mapped[dict[str, Any]]
    observed_at: Mapped[datetime]
    account_id: Mapped[UUID] = mapped_column(ForeignKey("accounts.id"))
    worker_id: Mapped[UUID]


class UnknownSubmission(Base):
    """A submission of a collector's journal that this database did not know when it was told of it. The first
    telling freezes the connection; the journal tells it again at every hello, and once a person has looked
    that is no news.
    """

    __tablename__ = "unknown_submissions"
    __table_args__ = (tenant_reference("connections", "connection_id", on_delete="cascade"),)

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    nonce: Mapped[str] = mapped_column(Text, primary_key=True)
    operation_id: Mapped[UUID]
    reported_at: Mapped[datetime]
