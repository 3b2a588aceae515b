"""The whole schema in one place: every room's tables and routines, in the order in which rooms build on each
other.

``db/`` takes this as a value, because it knows no room.
"""

from __future__ import annotations

from pathlib import Path

import lastcall.access.agents.tables  # each import adds a room's tables to the metadata
import lastcall.access.slack.tables
import lastcall.access.tables
import lastcall.api.v1.tables
import lastcall.clubs.tables
import lastcall.connections.tables
import lastcall.db.tables
import lastcall.decisions.approvals.tables
import lastcall.decisions.deliveries.tables
import lastcall.decisions.inbox.tables
import lastcall.decisions.questions.tables
import lastcall.decisions.runs.tables
import lastcall.decisions.tables
import lastcall.events.tables
import lastcall.mail.tables
import lastcall.operations.notice_tables
import lastcall.operations.paper_tables
import lastcall.operations.tables
import lastcall.people.sign_in_tables
import lastcall.people.tables
import lastcall.reads.tables
import lastcall.spending.tables
import lastcall.telemetry.tables  # noqa: F401
from lastcall.db.base import Base
from lastcall.db.routines import Schema

_PACKAGE = Path(__file__).parent

ROOMS = (
    "db",
    "deadlines",
    "mail",
    "people",
    "clubs",
    "access",
    "decisions",
    "spending",
    "events",
    "connections",
    "operations",
    "reads",
    "telemetry",
)
"""Rooms that may own routines (``<room>/sql/*.sql``), each after those it may call."""

SCHEMA = Schema(
    metadata=Base.metadata,
    routine_folders=tuple(folder for room in ROOMS if (folder := _PACKAGE / room / "sql").is_dir()),
)
