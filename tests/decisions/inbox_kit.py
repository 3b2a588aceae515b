"""Things that wait, written row by row, and what the inbox must show of them by a plain model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.decisions.inbox.item import Item, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_page
from lastcall.decisions.inbox.reach import Reach
from lastcall.decisions.retention.explain import AGEING

NEEDS = {
    "join_request": Permission.DECIDE_ACCESS,
    "approval": Permission.DECIDE_APPROVALS,
    "decision": Permission.DECIDE_APPROVALS,
    "failed_run": Permission.MANAGE_AGENTS,
}

INVITE = """insert into invites (club_id, id, token_hash, invited_by, expires_at)
values ($1, $2, sha256(uuid_send($2)), $3, lastcall_now())"""
JOIN_REQUEST = """insert into join_requests
    (club_id, id, invite_id, subject_kind, agent_name, status, activity_at, is_archived, decided_at)
values ($1, $2, $3, 'agent', 'agent', case when $4 then 'pending_approval' else 'rejected' end,
        $5::timestamptz, $6, case when not $4 then $5::timestamptz end)"""
DECISION = """insert into decisions
    (club_id, id, requested_by_kind, requested_by_system, title, body, options, status, activity_at, created_at,
     expires_at, decided_at)
values ($1, $2, 'system', 'test', 'Which?', '', '[{}, {}]', case when $3 then 'open' else 'cancelled' end,
        $4::timestamptz, $4::timestamptz,
        $4::timestamptz + interval '1 hour', case when not $3 then $4::timestamptz end)"""
APPROVAL = """insert into approvals
    (club_id, id, type, requested_by_kind, requested_by_system, title, body, status, activity_at, is_archived,
     decided_at)
values ($1, $2, 'question', 'system', 'test', 'May it?', '', case when $3 then 'pending' else 'withdrawn' end,
        $4::timestamptz, $5, case when not $3 then $4::timestamptz end)"""
AGENT = "insert into agents (club_id, id, name, responsible_id) values ($1, $2, 'Robo', $3)"
RUN = """insert into agent_runs
    (club_id, id, agent_id, key, thread_key, title, status, started_at, finished_at, superseded_at)
values ($1, $2::uuid, $3, ($2::uuid)::text, 'thread', 'Nightly', 'failed', $4::timestamptz,
        $4::timestamptz, case when not $5 then $4::timestamptz end)"""
DISMISSAL = """insert into inbox_dismissals (club_id, id, person_id, item_id, until, activity_at)
values ($1, gen_random_uuid(), $2, $3, $4, $5)"""


@dataclass(frozen=True)
class State:
    """One item: which source and club, how long ago it moved, and what was done to it. ``away`` is a snooze that is
    still on, one that is over, a dismissal in force, or one that newer activity undid."""

    source: str
    club: int
    age: timedelta
    waits: bool
    is_archived: bool
    away: str | None

    @property
    def is_away(self) -> bool:
        return self.away in ("snoozed", "dismissed")


@dataclass(frozen=True)
class Stage:
    """Two clubs, an agent in each, and the person who reads."""

    person_id: UUID
    clubs: tuple[UUID, UUID]
    agents: tuple[UUID, UUID]


async def place(tx: Transaction, stage: Stage, state: State, now: datetime) -> UUID:
    """Write the item; answers its id."""
    club, item, at = stage.clubs[state.club], new_id(), now - state.age
    raw = tx.raw
    match state.source:
        case "join_request":
            invite = new_id()
            await raw.execute(INVITE, club, invite, stage.person_id)
            await raw.execute(JOIN_REQUEST, club, item, invite, state.waits, at, state.is_archived)
        case "approval":
            await raw.execute(APPROVAL, club, item, state.waits, at, state.is_archived)
        case "decision":
            await raw.execute(DECISION, club, item, state.waits, at)
        case _:
            await raw.execute(RUN, club, item, stage.agents[state.club], at, state.waits)
    hour = timedelta(hours=1)
    until, seen = {
        "snoozed": (now + hour, at - hour),
        "woken": (now - hour, at),
        "dismissed": (None, at),
        "moved": (None, at - hour),
    }.get(state.away or "", (None, None))
    if seen is not None:
        await raw.execute(DISMISSAL, club, stage.person_id, item, until, seen)
    return item


def stands_on(state: State, shelf: Shelf, today: timedelta) -> bool:
    """The plain rule; ``today`` is how long ago the reader's day began."""
    is_archived = state.is_archived and state.source in ("join_request", "approval")
    if not state.waits or is_archived is not (shelf is Shelf.ARCHIVED):
        return False
    if shelf is Shelf.ARCHIVED:
        return True
    if state.is_away is not (shelf is Shelf.AWAY):
        return False
    match shelf:
        case Shelf.TODAY:
            return state.age <= today
        case Shelf.EARLIER:
            return today < state.age < AGEING
        case Shelf.AGEING:
            return state.age >= AGEING
        case _:
            return True


async def whole_list(tx: Reader, reach: Reach, wanted: Wanted, page: int = 3) -> list[Item]:
    """Every page of a shelf, one after the other."""
    found: list[Item] = []
    after = None
    while True:
        answer = await inbox_page(tx, reach, wanted, after=after, limit=page)
        found += answer.items
        after = answer.next
        if after is None:
            return found
