"""What an operator's program asks: when the server must be awake next, and how its deadline owners do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import httpx2
import pytest
from tests.web.conftest import PLAIN, Site, Visitor, World

from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.api.ops.awake import Awake, next_wake, of_owners
from lastcall.app import House
from lastcall.deadlines.scheduler import Scheduler
from lastcall.mail.mailer import Mailer
from lastcall.people.api_tokens import create_token
from lastcall.people.scopes import Scope
from lastcall.settings import Settings
from lastcall.testing.agents import let_in_agent
from lastcall.testing.waiting import eventually

HOUR = timedelta(hours=1)
Ask: TypeAlias = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
def ask(site: Site, world: World) -> Ask:
    """Ask with a new token of that person, or with what is given."""

    async def ask(path: str, name: str = "operator", scope: Scope = Scope.OPERATOR, key: str = "") -> Any:
        if not key:
            mailer = Mailer(world.db, None, site.url)
            _, key = await create_token(world.db, mailer, world.actors[name], "Watch", [scope], HOUR)
        async with httpx2.AsyncClient(base_url=site.url, trust_env=False, verify=PLAIN) as client:
            return await client.get(path, headers={"Authorization": f"Bearer {key}"})

    return ask


async def request_due_in(world: World, left: timedelta) -> datetime:
    """A join request waits, and is due then."""
    invite = await create_invite(world.db, world.actors["owner"], world.club_id, (), kind=InviteKind.AGENT)
    now: datetime = await world.db.pool.fetchval("select date_trunc('second', lastcall_now())")
    asked = now - timedelta(days=90) + left
    await record_join_request(world.db, world.club_id, invite.id, AgentSubject("robot"), activity_at=asked)
    return now + left


@pytest.mark.clause("SCH-09")
async def test_next_wake_says_the_earliest_deadline_and_whose_it_is(world: World, ask: Ask) -> None:
    due = await request_due_in(world, HOUR)

    async def is_told() -> dict[str, Any] | None:
        answer: dict[str, Any] = (await ask("/ops/next-wake")).json()
        return answer if answer["owner"] == "join_request_retention" else None

    told = await eventually(is_told)
    assert datetime.fromisoformat(told["nextWake"]) == due
    assert 3500 < told["inSeconds"] <= 3600
    assert told["reasons"] == []
    assert told["maySleep"] is True


@pytest.mark.clause("SCH-09")
async def test_an_open_page_is_a_reason_not_to_sleep_until_it_is_closed(
    visit: Callable[..., Visitor], ask: Ask
) -> None:
    async with visit("operator").client.stream("GET", "/operator/live"):
        told = (await ask("/ops/next-wake")).json()
        assert [
            (one["reason"], one["count"]) for one in told["reasons"] if one["reason"] == "pages_open"
        ] == [("pages_open", 1)]
        assert told["maySleep"] is False

    async def may_sleep() -> bool:
        return bool((await ask("/ops/next-wake")).json()["maySleep"])

    await eventually(may_sleep)


@pytest.mark.clause("SCH-09")
async def test_each_sort_of_work_that_no_alarm_covers_is_named(world: World) -> None:
    house = House(Settings(wake_channel=True), world.db)
    names = [one.name for one in house.awake()]
    assert names == [
        "owners_working",
        "commits_unclear",
        "collectors_waiting",
        "agents_waiting",
        "pages_open",
        "mail_under_way",
        "wake_channel_on",
    ]
    assert {one.name: one.count() for one in house.awake()}["wake_channel_on"] == 1
    quiet = House(Settings(), world.db)
    assert [one.name for one in quiet.awake() if one.count()] == []


async def test_a_deadline_that_is_there_already_and_one_reason_each_forbid_sleep(world: World) -> None:
    scheduler = Scheduler(world.db, [])
    quiet = Awake("quiet", "Nothing.", lambda: 0)
    assert next_wake(scheduler, [quiet]).may_sleep
    told = next_wake(scheduler, [quiet, Awake("two", "Two wait.", lambda: 2)])
    assert not told.may_sleep
    assert [(one.reason, one.count, one.says) for one in told.reasons] == [("two", 2, "Two wait.")]
    unread = House(Settings(), world.db).scheduler
    assert not next_wake(unread, of_owners(unread.status)).may_sleep, "its deadlines were never read"


async def test_figures_say_what_each_owner_did(site: Site, world: World, ask: Ask) -> None:
    await request_due_in(world, -HOUR)

    async def figures() -> str | None:
        text: str = (await ask("/ops/metrics")).text
        return text if 'owner_rows_total{owner="join_request_retention"} 1.0' in text else None

    text = await eventually(figures)
    for name in ("passes_total", "reads_total", "signals_total", "failures_total", "poison_rows", "running"):
        assert f'lastcall_owner_{name}{{owner="join_request_retention"}}' in text
    assert 'lastcall_awake{reason="pages_open"} 0.0' in text
    assert "lastcall_statements_total" in text


async def test_only_an_operator_with_that_scope_is_answered(world: World, ask: Ask) -> None:
    _, key = await let_in_agent(world.db, world.club_id, world.actors["owner"].person_id)
    for path in ("/ops/next-wake", "/ops/metrics"):
        assert (await ask(path)).status_code == 200
        assert (await ask(path, scope=Scope.READ)).json()["code"] == "scope_missing"
        assert (await ask(path, "owner", Scope.READ)).json()["code"] == "operators_only"
        assert (await ask(path, key="lc_nobody")).status_code == 401
        assert (await ask(path, key=key)).status_code == 403
