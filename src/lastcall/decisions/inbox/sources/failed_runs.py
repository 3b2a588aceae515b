"""Runs of agents that failed, until a newer run on the same thing is reported."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import encode_id
from lastcall.decisions.inbox.source import Severity, Shown, Source
from lastcall.decisions.runs.queries import run_unknown
from lastcall.decisions.runs.service import TOPIC
from lastcall.people.scopes import Scope

_LINE = 200  # characters of an error; the whole of it is on the agent's page
_FACTS = f"""jsonb_build_object(
    'title', s.title, 'error', left(s.error, {_LINE}),
    'agent', (select a.name from agents a where a.club_id = s.club_id and a.id = s.agent_id))"""  # noqa: S608


def _words(facts: dict[str, Any]) -> Shown:
    failed = f"The agent {facts['agent']} failed"
    return Shown(facts["title"], f"{failed}: {facts['error']}" if facts["error"] else f"{failed}.")


def _page(item_id: UUID) -> str:
    return f"runs/{encode_id(item_id)}"


FAILED_RUNS = Source(
    name="failed_run",
    label="Failed runs",
    icon="warning",
    table="agent_runs",
    activity="finished_at",
    waits="s.status = 'failed' and s.superseded_at is null",
    facts=_FACTS,
    words=_words,
    why="An agent reported that it failed, and has not tried again since. It leaves with the agent's next run on the"
    " same thing.",
    page=_page,
    permission=Permission.MANAGE_AGENTS,
    severity=Severity.HIGH,
    scope=Scope.DECISIONS,
    topics=(TOPIC,),
    unknown=run_unknown,
)
