"""Join requests that wait (DEC-01). Whether their invite has expired or was revoked plays no part."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from lastcall.access.deciding import approve_join_request, reject_join_request
from lastcall.access.policy import join_request_unknown
from lastcall.access.requests import TOPIC
from lastcall.access.tables import FORGOTTEN
from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.decisions.inbox.source import Chosen, Severity, Shown, Source, Verdict
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_FACTS = """jsonb_build_object(
    'kind', s.subject_kind, 'agent_name', s.agent_name, 'email', s.email,
    'name', (select p.display_name from people p where p.id = s.person_id))"""


def _words(facts: dict[str, Any]) -> Shown:
    email = facts["email"] if facts["email"] != FORGOTTEN else None
    if facts["kind"] == "agent":
        return Shown(facts["agent_name"], "An agent wants into the club.")
    detail = "Wants onto the staff."
    if facts["name"]:
        return Shown(facts["name"], f"{email} · {detail}" if email else detail)
    return Shown(email or "Somebody", detail)


def _for_agents(facts: dict[str, Any]) -> Shown:
    if facts["kind"] == "agent":
        return Shown(facts["agent_name"], "An agent wants into the club.")
    return Shown("A person", "Wants onto the staff.")


async def _decide(db: Database, actor: Actor, verdict: Verdict, chosen: Chosen) -> None:
    act = approve_join_request if verdict is Verdict.APPROVE else reject_join_request
    await act(db, actor, chosen.club_id, chosen.id, note=chosen.note, mailer=chosen.mailer)


def _page(item_id: UUID) -> str:
    return f"join-requests/{encode_id(item_id)}"


JOIN_REQUESTS = Source(
    name="join_request",
    label="Join requests",
    icon="staff",
    table="join_requests",
    activity="activity_at",
    waits="s.status = 'pending_approval'",
    facts=_FACTS,
    words=_words,
    agents_read=_for_agents,
    why="Somebody accepted an invitation, and nobody has decided yet whether they get in.",
    page=_page,
    permission=Permission.DECIDE_ACCESS,
    severity=Severity.MEDIUM,
    scope=Scope.ACCESS,
    topics=(TOPIC,),
    unknown=join_request_unknown,
    kind=JOIN_REQUEST,
    decide=_decide,
)
