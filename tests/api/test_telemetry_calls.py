"""Aggregates and the audit log over HTTP, with a real key: what is kept, what is refused, and what a pass costs."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.api.bodies import EVIDENCE
from tests.api.conftest import Caller

import lastcall.telemetry.listeners
from lastcall.db.ids import encode_id, new_id

STATED = Path(__file__).parents[2] / "docs" / "explanation" / "telemetry.md"
WORLD = "wrld_00000000-0000-4000-8000-000000000001"
GROUP = {
    "groupId": "grp_1",
    "name": "Group 1",
    "privacy": "default",
    "joinState": "open",
    "membership": "member",
}


def instance(number: int, population: int, more: str = "") -> dict[str, Any]:
    return {
        "location": f"{WORLD}:{number}~group(grp_1){more}",
        "worldId": WORLD,
        "population": population,
    }


async def sample(
    caller: Caller, lease: dict[str, Any], *instances: dict[str, Any], poll: str = "p" * 20
) -> Any:
    return await caller("sample", lease=lease, pollId=poll, ageMs=1500, memberCount=70, instances=instances)


async def test_a_sample_is_recorded_once_however_often_it_is_sent(caller, site):
    lease = await caller.lease()
    first = await sample(caller, lease, instance(1, 5), instance(2, 3))
    again = await sample(caller, lease, instance(1, 5), instance(2, 3))
    assert (first.json(), again.json()) == ({"isRecorded": True}, {"isRecorded": False})
    assert await site.db.pool.fetchval("select sum(population) from telemetry_instances") == 8


async def test_a_sample_that_names_a_person_is_refused_with_its_field(caller, site):
    refused = await sample(caller, await caller.lease(), instance(1, 5, "~private(usr_1)"))
    assert refused.status_code == 422
    assert (refused.json()["code"], refused.json()["field"]) == ("sample_names_person", "instances")
    assert await site.db.pool.fetchval("select count(*) from telemetry_samples") == 0


async def test_more_instances_than_a_group_has_are_refused_before_they_are_looked_at(caller):
    refused = await sample(caller, await caller.lease(), *(instance(number, 1) for number in range(201)))
    assert (refused.status_code, refused.json()["code"]) == (422, "malformed_call")


async def test_a_page_of_the_audit_log_is_claimed_read_and_kept(caller, site, test_clock):
    await test_clock.freeze()
    lease = await caller.lease()
    seen = {**EVIDENCE, "permissions": ["group-audit-view"]}
    await caller("membership", lease=lease, group=GROUP, evidence=seen)
    assert (await caller("audit_claim", lease=lease)).json() == {"window": None}
    await test_clock.advance(timedelta(hours=1))
    lease = await caller.lease()
    window = (await caller("audit_claim", lease=lease)).json()["window"]
    assert window["offset"] == 0
    page = {
        "lease": lease,
        "scanId": window["scanId"],
        "offset": 0,
        "rawCount": 2,
        "isLast": True,
        "entries": [{"entryId": "gaud_1", "at": window["startsAt"], "event": "group.member.join"}],
    }
    assert (await caller("audit_page", **page)).json() == {"isRecorded": True}
    assert (await caller("audit_page", **page)).json() == {"isRecorded": False}
    kept = await site.db.pool.fetch("select entry_id, event from audit_entries")
    assert [tuple(row) for row in kept] == [("gaud_1", "group.member.join")]


@pytest.mark.clause("COL-05", "COL-10")
async def test_five_failures_of_the_aggregates_leave_the_connection_active_and_coverage_unknown(caller, site):
    lastcall.telemetry.listeners.register()
    for _ in range(5):
        lease = await caller.lease()
        answer = await caller("failure", code="schema_drift", lease=lease, telemetryOnly=True)
        assert answer.status_code == 200
        await caller("release", lease=lease)
    row = await site.db.pool.fetchrow("select state, backoff_until, telemetry_failures from connections")
    assert tuple(row) == ("active", None, 5)
    assert (
        await site.db.pool.fetchval("select state from telemetry_coverage where ended_at is null")
        == "unknown"
    )


async def test_an_idle_pass_with_analytics_costs_the_stated_statements(caller, site, test_clock):
    """Every call that a pass over an idle group makes, a page of the log and the proof of identity among them."""

    async def idle_pass(number: int) -> int:
        before = site.db.statements
        lease = await caller.lease()
        await caller("claim", lease=lease, journalId=encode_id(new_id()))
        await caller("read_claim", lease=lease)
        await caller("allowance", amount=1)
        await caller("allowance", amount=2, lease=lease)
        await sample(caller, lease, instance(1, 5), poll=f"poll-{number:020d}")
        await caller("membership", lease=lease, group=GROUP, evidence=EVIDENCE)
        window = (await caller("audit_claim", lease=lease)).json()["window"]
        await caller("allowance", amount=1, lease=lease)
        page = {"scanId": window["scanId"], "offset": 0, "rawCount": 0, "isLast": True, "entries": []}
        assert (await caller("audit_page", lease=lease, **page)).json() == {"isRecorded": True}
        await caller("release", lease=lease)
        return site.db.statements - before

    await test_clock.freeze()
    for number in range(2):  # in the first one the key is looked up, once
        await test_clock.advance(timedelta(minutes=10))
        spent = await idle_pass(number)
    stated = re.search(r"^\| the collector's calls: .* \| (\d+) \|$", STATED.read_text(), re.MULTILINE)
    assert stated is not None
    assert spent == int(stated[1])
