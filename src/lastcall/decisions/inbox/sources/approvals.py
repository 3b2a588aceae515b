"""Approvals that are pending (DEC-01). One that waits for its asker's revision is not staff's to decide."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.approvals.deciding import approve, reject
from lastcall.decisions.approvals.rows import TOPIC, read, require_decider
from lastcall.decisions.inbox.asked import ASKER_FACTS, asker, asker_without_name
from lastcall.decisions.inbox.source import Chosen, Severity, Shown, Source, Verdict, on_its_page
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.people.actor import Actor

_FACTS = f"jsonb_build_object('title', s.title, {ASKER_FACTS})"


def _words(facts: dict[str, Any]) -> Shown:
    return Shown(facts["title"], f"An approval, asked by {asker(facts)}")


def _for_agents(facts: dict[str, Any]) -> Shown:
    return Shown(facts["title"], f"An approval, asked by {asker_without_name(facts)}")


# Nobody decides their own, and what an approval does is read on its page before it is approved.
_VERDICTS = """case when s.requested_by_person_id = :person then jsonb_build_array()
    when s.effect_name is null then jsonb_build_array('approve', 'reject') else jsonb_build_array('reject') end"""


async def _decide(db: Database, actor: Actor, verdict: Verdict, chosen: Chosen) -> None:
    if verdict is Verdict.REJECT:
        await reject(db, actor, chosen.club_id, chosen.id, seen_revision=chosen.seen, note=chosen.note)
        return
    async with db.read() as tx:
        standing = await require_staff(tx, actor, chosen.club_id, scope=APPROVAL.scope)
        row = await read(tx, chosen.club_id, chosen.id)
        require_decider(row, actor, standing)
    if row.effect_name is not None:  # which no later revision changes
        raise on_its_page()
    await approve(db, actor, chosen.club_id, chosen.id, seen_revision=chosen.seen, note=chosen.note)


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
    topics=(TOPIC,),
    unknown=APPROVAL.unknown,
    kind=APPROVAL,
    version="s.revision",
    decide=_decide,
    verdicts=_VERDICTS,
)
