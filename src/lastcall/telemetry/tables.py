"""Tables of this room. All belong to a club; none has a person in it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from lastcall.db.base import Base, TenantTable, tenant_reference
from lastcall.telemetry.states import INSTANCES_MOST, CoverageState

_STORED = ", ".join(repr(state.value) for state in CoverageState if state.is_stored)


class Sample(TenantTable, Base):
    """One look at the group's aggregates. ``poll_id`` names it, so that the same one sent twice is kept once.

    ``population`` is the sum over its instances; ``member_count`` is empty where the group itself was not read anew.
    """

    __tablename__ = "telemetry_samples"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        UniqueConstraint("club_id", "connection_id", "poll_id"),
        CheckConstraint("member_count >= 0", name="member_count"),
        CheckConstraint("population >= 0", name="population"),
        CheckConstraint(f"instance_count between 0 and {INSTANCES_MOST}", name="instance_count"),
        Index("telemetry_samples_observed_idx", "club_id", "connection_id", "observed_at"),
    )

    connection_id: Mapped[UUID]
    epoch: Mapped[datetime]
    poll_id: Mapped[str]
    observed_at: Mapped[datetime]
    received_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    member_count: Mapped[int | None]
    population: Mapped[int]
    instance_count: Mapped[int]


class InstanceSample(Base):
    """How many people a sample saw in one instance. ``location`` is in its canonical form (``locations.py``)."""

    __tablename__ = "telemetry_instances"
    __table_args__ = (
        tenant_reference("telemetry_samples", "sample_id", on_delete="cascade"),
        CheckConstraint("population >= 0", name="population"),
        # Small letters: VRChat's own marker of a person, which no location here may hold.
        CheckConstraint("position('usr_' in lower(location)) = 0", name="location"),
    )

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    sample_id: Mapped[UUID] = mapped_column(primary_key=True)
    location: Mapped[str] = mapped_column(primary_key=True)
    world_id: Mapped[str]
    population: Mapped[int]


class CoverageWindow(TenantTable, Base):
    """A stretch of time in which a connection's analytics stood one way. A connection has one open window at most.

    A window is opened on each change.
    """

    __tablename__ = "telemetry_coverage"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        CheckConstraint(f"state in ({_STORED})", name="state"),
        CheckConstraint("ended_at >= started_at", name="order"),
        Index(
            "telemetry_coverage_open_key",
            "club_id",
            "connection_id",
            unique=True,
            postgresql_where=text("ended_at is null"),
        ),
        Index("telemetry_coverage_started_idx", "club_id", "connection_id", "started_at"),
    )

    connection_id: Mapped[UUID]
    epoch: Mapped[datetime]
    state: Mapped[str]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class AuditScan(TenantTable, Base):
    """A stretch of the group's audit log that is or was read, page by page; a later lease goes on at its offset."""

    __tablename__ = "audit_scans"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        CheckConstraint("starts_at < ends_at", name="order"),
        CheckConstraint("next_offset >= 0", name="next_offset"),
        Index(
            "audit_scans_open_key",
            "club_id",
            "connection_id",
            "epoch",
            unique=True,
            postgresql_where=text("finished_at is null"),
        ),
        Index("audit_scans_ends_idx", "club_id", "connection_id", "ends_at"),
    )

    connection_id: Mapped[UUID]
    epoch: Mapped[datetime]
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    next_offset: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=text("lastcall_now()"))
    finished_at: Mapped[datetime | None]


class AuditEntry(Base):
    """A line of the group's audit log: what happened and when, not who did it or to whom."""

    __tablename__ = "audit_entries"
    __table_args__ = (
        tenant_reference("connections", "connection_id", on_delete="cascade"),
        Index("audit_entries_at_idx", "club_id", "connection_id", "at"),
    )

    club_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    entry_id: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    event: Mapped[str]
