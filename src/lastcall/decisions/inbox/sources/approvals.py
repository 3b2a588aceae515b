"""Approvals that are pending (DEC-01). One that waits for its asker's revision is not staff's to decide."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import encode_id
from lastcall.decisions.inbox.asked import ASKER_FACTS, asker, asker_without_name
from lastcall.decisions.inbox.source import Severity, Shown, Source
from lastcall.decisions.retention.kinds.approval import APPROVAL

_FACTS = f"jsonb_build_object('title', s.title, {ASKER_FACTS})"


def _words(facts: dict[str, Any]) -> Shown:
    return Shown(facts["title"], f"An approval, asked by {asker(facts)}")


def _for_agents(facts: dict[str, Any]) -> Shown:
    return Shown(facts["title"], f"An approval, asked by {asker_without_name(facts)}")


def _page(item_id: UUID) -> str:
    return f"approvals/{encode_id(item_id)}"


APPROVALS = Source(
    name="approval",
    label="Approvals",
    icon="check",
    table="approvals",
    activity="activity_at",
    waits="s.status = 'pending'",
    facts=_FACTS,
    words=_words,
    agents_read=_for_agents,
    why="Somebody asked for a yes or a no, and nobody has answered yet.",
    page=_page,
    permission=Permission.DECIDE_APPROVALS,
    severity=Severity.MEDIUM,
    scope=APPROVAL.scope,
    topics=(APPROVAL.topic,),
    unknown=APPROVAL.unknown,
    kind=APPROVAL,
    version="s.revision",
)
