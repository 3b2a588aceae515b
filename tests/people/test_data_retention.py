"""What is kept about people goes on its day: not before, a page at a time, with one wake a day at most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lastcall.app import register
from lastcall.clubs.service import add_club
from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, More, Stop
from lastcall.deadlines.scheduler import Scheduler
from lastcall.people import data_retention
from lastcall.people.data_retention import SHORTEST, DataRetention, Rule, midnight_after, rules
from lastcall.people.service import add_person
from lastcall.people.sign_in import make_sign_in_link
from lastcall.testing.waiting import eventually

PRIVACY = Path(__file__).parents[2] / "docs" / "explanation" / "privacy.md"

# A row of each table that a rule is about, whose use ended at $1; $2 is a person, $3 a club.
ROWS = {
    "sign_in_links": "insert into sign_in_links (id, person_id, token_hash, expires_at)"
    " values (gen_random_uuid(), $2, sha256(uuid_send(gen_random_uuid())), $1)",
    "sign_in_flows": "insert into sign_in_flows (id, kind, purpose, state_hash, browser_hash, expires_at, person_id)"
    " values (gen_random_uuid(), 'passkey', 'step_up', sha256(uuid_send(gen_random_uuid())), sha256('b'), $1, $2)",
    "sessions": "insert into sessions (id, person_id, token_hash, signed_in_by, expires_at, revoked_at)"
    " values (gen_random_uuid(), $2, sha256(uuid_send(gen_random_uuid())), 'link',"
    " $1::timestamptz + interval '5 days', $1)",
    "api_tokens": "insert into api_tokens (id, person_id, name, token_hash, hint, scopes, created_at, expires_at)"
    " values (gen_random_uuid(), $2, 'x', sha256(uuid_send(gen_random_uuid())), 'lc_', '{read}',"
    " $1::timestamptz - interval '1 day', $1)",
    "outgoing_mail": "insert into outgoing_mail (id, kind, address, created_at)"
    " values (gen_random_uuid(), 'x', 'a@example.org', $1) returning $2::uuid",
    "audit_log": "insert into audit_log (id, action, subject, created_at, actor_person_id)"
    " values (gen_random_uuid(), 'x', 'y', $1, $2)",
    "rate_limits": "insert into rate_limits (name, key_hash, ends_at, count)"
    " values ('x', sha256(uuid_send(gen_random_uuid())), $1, 1) returning $2::uuid",
    "idempotency_keys": "insert into idempotency_keys (person_id, key, digest, created_at)"
    " values ($2, gen_random_uuid()::text, sha256('x'), $1)",
    "invites": "insert into invites (club_id, id, token_hash, email, invited_by, expires_at)"
    " select c.id, gen_random_uuid(), sha256(uuid_send(gen_random_uuid())), 'a@example.org', $2, $1 from clubs c",
    "join_requests": "with i as (insert into invites (club_id, id, token_hash, invited_by, expires_at)"
    " select c.id, gen_random_uuid(), sha256(uuid_send(gen_random_uuid())), $2, $1 from clubs c returning club_id, id)"
    " insert into join_requests (club_id, id, invite_id, subject_kind, email, status, decided_at)"
    " select club_id, id, id, 'person', 'a@example.org', 'rejected', $1 from i",
    "slack_links": "with s as (insert into slack_installations"
    " (club_id, id, team_id, team_name, token_sealed, role_id, installed_by)"
    " select club_id, gen_random_uuid(), 'T', 'x', 'x', min(id::text)::uuid, $2 from staff_roles group by club_id"
    " on conflict (club_id) do update set team_name = 'y' returning club_id, id)"
    " insert into slack_links"
    " (club_id, id, installation_id, slack_user_id, slack_name, token_hash, request_hash, expires_at)"
    " select club_id, gen_random_uuid(), id, 'U', 'x', sha256(uuid_send(gen_random_uuid())),"
    " sha256(uuid_send(gen_random_uuid())), $1 from s",
    "deliveries": "insert into deliveries"
    " (club_id, id, kind, channel, person_id, dedup, data, state, created_at, ended_at)"
    " select c.id, gen_random_uuid(), 'x', 'app', $2, gen_random_uuid()::text, '{}', 'delivered', $1, $1 from clubs c",
    "agent_runs": "with a as (insert into agents (club_id, id, name, responsible_id)"
    " select c.id, gen_random_uuid(), gen_random_uuid()::text, $2 from clubs c returning club_id, id)"
    " insert into agent_runs (club_id, id, agent_id, key, thread_key, title, status, started_at, finished_at)"
    " select club_id, gen_random_uuid(), id, 'x', 'x', 'x', 'succeeded', $1, $1 from a",
    "calendar_imports": "insert into calendar_imports"
    " (club_id, id, source_kind, source, name, zone, created_at, created_by)"
    " select c.id, gen_random_uuid(), 'file', 'a.ics', '', 'UTC', $1, $2 from clubs c",
}


@pytest.fixture
async def person_id(database: Database) -> UUID:
    register()
    made = await add_person(database, "owner@example.org", "Owner")
    await add_club(database, None, "The Attic", "attic", "UTC", made)
    await database.pool.execute("delete from audit_log")
    return made


async def now_of(database: Database) -> datetime:
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    return now


async def left(database: Database, rule: Rule) -> int:
    kept: int = await database.pool.fetchval(f"select count(*) from {rule.table} where {rule.where}")
    return kept


async def finish(owner: DataRetention) -> int:
    done = 0
    while True:
        result = await owner.run_pass(Stop())
        assert isinstance(result, Done | More)
        done += result.done
        if isinstance(result, Done):
            return done


async def test_each_kind_goes_on_its_day_and_not_before(database: Database, person_id: UUID) -> None:
    assert {rule.table for rule in rules()} == set(ROWS), "a rule without a row here, or a row without a rule"
    now = await now_of(database)
    for rule in rules():
        for ended in (now - rule.keep, now - rule.keep + timedelta(hours=1)):
            await database.pool.execute(ROWS[rule.table], ended, person_id)
        assert await left(database, rule) == 2, rule.what
    done = await finish(DataRetention(database, rules()))
    assert done == len(rules())
    for rule in rules():
        assert await left(database, rule) == 1, rule.what
    assert await database.pool.fetchval("select count(*) from join_requests") == 2, "only the address goes"
    bound = await database.pool.fetchval("select count(*) from invites where email = 'forgotten'")
    assert bound == 1, (
        "the invite goes on saying that it was for one address: without it, anybody could use it again"
    )


async def test_the_deadline_is_a_midnight_and_none_when_nothing_will_be_due(
    database: Database, person_id: UUID
) -> None:
    owner = DataRetention(database, rules())
    assert (await owner.next_deadline()).deadline is None
    ended = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
    for later in (timedelta(0), timedelta(hours=3), timedelta(hours=11, minutes=59)):
        await database.pool.execute(ROWS["sign_in_links"], ended + later, person_id)
    assert (await owner.next_deadline()).deadline == datetime(2026, 4, 1, tzinfo=UTC), (
        "one wake for all three"
    )
    await database.pool.execute(ROWS["sign_in_links"], datetime(2026, 2, 1, tzinfo=UTC), person_id)
    assert (await owner.next_deadline()).deadline == datetime(2026, 3, 3, tzinfo=UTC), (
        "on the dot is that day"
    )


async def test_a_full_page_is_followed_at_once_and_a_stop_ends_it(
    database: Database, person_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_retention, "PAGE", 2)
    old = await now_of(database) - timedelta(days=500)
    for _ in range(5):
        await database.pool.execute(ROWS["audit_log"], old, person_id)
    owner = DataRetention(database, rules())
    stop = Stop()
    stop.request()
    assert await owner.run_pass(stop) == More(0)
    assert await owner.run_pass(Stop()) == More(2)
    assert await finish(owner) == 3


async def test_writing_data_arms_the_owner_without_a_statement(database: Database, person_id: UUID) -> None:
    scheduler = Scheduler(database, [DataRetention(database, rules())])
    await scheduler.start()
    await eventually(lambda: scheduler.status()[0].reads and not scheduler.status()[0].running)
    status = scheduler.status()[0]
    assert status.deadline is None
    before = database.statements
    async with database.transaction() as tx:
        data_retention.data_written(tx)
    # BEGIN, COMMIT, and the id of a transaction that has something to say.
    assert database.statements - before == 3
    soonest = midnight_after(datetime.now(UTC) + SHORTEST)
    assert scheduler.status()[0].deadline == soonest
    assert scheduler.status()[0].reads == status.reads
    await make_sign_in_link(database, "owner@example.org")
    owner = DataRetention(database, rules())
    reading = await owner.next_deadline()
    assert reading.deadline is not None
    assert reading.deadline >= soonest, "what is written now is due no earlier than was signalled"
    await scheduler.stop()


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


async def test_each_rule_finds_its_first_row_by_one_index_without_sorting(
    database: Database, person_id: UUID
) -> None:
    """On empty tables a scan would be cheaper, so it is forbidden: is there an index that serves?"""
    async with database.transaction() as tx:
        await tx.raw.execute("set local enable_seqscan to off")
        await tx.raw.execute("set local enable_bitmapscan to off")
        for rule in rules():
            plan = (await tx.raw.fetchval(f"explain (format json) select {rule.due}"))[0]["Plan"]
            kinds = {node["Node Type"] for node in nodes(plan)}
            assert kinds <= {"Result", "Limit", "Index Scan", "Index Only Scan"}, (rule.what, kinds)


def test_the_page_about_privacy_promises_what_the_rules_keep() -> None:
    register()
    page = PRIVACY.read_text(encoding="utf-8")
    for rule in rules():
        days = round(rule.keep / timedelta(days=1))
        assert f"| {rule.what} | {days} day{'s' if days != 1 else ''} |" in page, rule.what
