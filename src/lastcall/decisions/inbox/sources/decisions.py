"""Decisions that are open: they are chosen on their own page, and expire there."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import encode_id
from lastcall.decisions.inbox.asked import ASKER_FACTS, asker
from lastcall.decisions.inbox.source import Severity, Shown, Source
from lastcall.decisions.questions.asking import TOPIC, decision_unknown
from lastcall.people.scopes import Scope

_FACTS = f"""jsonb_build_object(
    'title', s.title, 'expires_at', s.expires_at, 'options', jsonb_array_length(s.options), {ASKER_FACTS})"""


def _words(facts: dict[str, Any]) -> Shown:
    detail = f"{facts['options']} options, asked by {asker(facts)}"
    return Shown(facts["title"], detail, datetime.fromisoformat(facts["expires_at"]))


def _page(item_id: UUID) -> str:
    return f"decisions/{encode_id(item_id)}"


DECISIONS = Source(
    name="decision",
    label="Decisions",
    icon="question",
    table="decisions",
    activity="activity_at",
    waits="s.status = 'open'",
    facts=_FACTS,
    words=_words,
    why="Somebody put a question with options, and nobody has chosen yet.",
    page=_page,
    permission=Permission.DECIDE_APPROVALS,
    severity=Severity.MEDIUM,
    scope=Scope.DECISIONS,
    topics=(TOPIC,),
    unknown=decision_unknown,
)
