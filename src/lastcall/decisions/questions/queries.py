"""Reads of decisions for screens and API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.listing import (
    AskedView,
    Listing,
    Which,
    asked_fields,
    is_of,
    one_of,
    page_of,
    page_of_agent,
    shown,
)
from lastcall.decisions.questions.asking import DecisionStatus, Option, decision_unknown
from lastcall.people.actor import Actor, AgentActor

LISTING = "decisions"
"""The lists, in their cursors."""
DECISIONS = Listing(
    "decisions", ("options", "action_body", "action_result"), "a.status = 'open'", decision_unknown
)


@dataclass(frozen=True, kw_only=True)
class DecisionView(AskedView):
    """A decision as its reader sees it. ``may_decide`` and ``may_cancel`` are what this reader can do now.
    ``action_body`` is redacted."""

    options: tuple[Option, ...]
    action_name: str | None
    action_body: Mapping[str, Any] | None
    action_result: Mapping[str, Any] | None
    status: DecisionStatus
    expires_at: datetime
    decided_option: str | None
    may_decide: bool
    may_cancel: bool

    @property
    def chosen(self) -> str | None:
        """The words of the option that was chosen."""
        return next((one.label for one in self.options if one.key == self.decided_option), None)


async def decisions_page(
    tx: Reader,
    actor: Actor,
    club_id: UUID,
    which: Which,
    *,
    after: Cursor | None = None,
    limit: int = 50,
) -> list[DecisionView]:
    """The club's decisions, the latest first: the open ones or all for whoever may decide (``decide_approvals``), and
    anybody's own on the staff. ``NotFound`` where there is nothing that the reader may see."""
    rows, may_decide = await page_of(tx, DECISIONS, actor, club_id, which, after, limit)
    return [_view(row, actor, may_decide=may_decide) for row in rows]


async def decisions_of_agent(
    tx: Reader, agent: AgentActor, *, after: Cursor | None = None, limit: int = 50
) -> list[DecisionView]:
    """What this agent asked, the latest first; needs the grant ``ask``."""
    rows = await page_of_agent(tx, DECISIONS, agent, after, limit)
    return [_view(row, agent, may_decide=False) for row in rows]


async def one_decision(
    tx: Reader, reader: Actor | AgentActor, club_id: UUID, decision_id: UUID
) -> DecisionView:
    """One decision, for its asker and for whoever may decide it."""
    row, may_decide = await one_of(tx, DECISIONS, reader, club_id, decision_id)
    return _view(row, reader, may_decide=may_decide)


def _view(row: asyncpg.Record, reader: Actor | AgentActor, *, may_decide: bool) -> DecisionView:
    status, theirs = DecisionStatus(row["status"]), is_of(row, reader)
    is_open = status is DecisionStatus.OPEN
    return DecisionView(
        **asked_fields(row),
        options=tuple(
            Option(one["key"], one["label"], one["detail"])
            for one in msgspec.json.decode(row["options_text"])
        ),
        action_name=row["action_name"],
        action_body=shown(row["action_body_text"]),
        action_result=shown(row["action_result_text"]),
        status=status,
        expires_at=row["expires_at"],
        decided_option=row["decided_option"],
        may_decide=is_open and may_decide and not theirs,
        may_cancel=is_open and theirs,
    )
