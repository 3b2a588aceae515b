"""Whoever does not know whether their action was queued confirms it again (ENQ-05, ENQ-09)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.web.compose_kit import (
    CLUB,
    PEOPLE,
    WORLD,
    Visit,
    carried,
    reviewed,
    soon,
    stored,
    timed_event,
)
from tests.web.conftest import ROLE, Site, World

from lastcall.db.ids import encode_id
from lastcall.testing.clock import TestClock

CHANGES: dict[str, tuple[dict[str, str], str]] = {
    "the time passed": ({"when": "at"}, ""),
    "the event was cancelled": (
        {"when": "event"},
        "update events set status = 'cancelled', cancel_generation = cancel_generation + 1",
    ),
    "the event was removed": (
        {"when": "now"},
        "update events set removed_at = lastcall_now(), cancel_generation = cancel_generation + 1",
    ),
    "the event lost its time": (
        {"when": "event"},
        "update events set schedule_kind = 'tba', starts_at = null, tba_generation = tba_generation + 1",
    ),
}


@pytest.mark.clause("ENQ-05", "ENQ-09")
@pytest.mark.parametrize("change", CHANGES)
async def test_whoever_confirms_again_is_led_to_what_they_queued_whatever_happened_since(
    world: World, site: Site, visit: Visit, change: str, test_clock: TestClock
) -> None:
    """Nobody who lost the first answer is told to make another request of it."""
    visitor = visit("owner")
    fields, statement = CHANGES[change]
    when = {"at": f"{soon(minutes=5):%Y-%m-%dT%H:%M}", "zone": "UTC"}
    if statement:
        when = {"event": await timed_event(world, soon(days=2))}
    text = await reviewed(visitor, "assign_role", PEOPLE | {"role": ROLE} | when | fields)
    first = await visitor.post(f"{CLUB}/new/assign_role", carried(text))
    assert first.status_code == 303, first.text
    if statement:
        await world.db.pool.execute(statement)
    else:
        await test_clock.advance(timedelta(minutes=40))
    again = await visitor.post(f"{CLUB}/new/assign_role", carried(text))
    assert (again.status_code, again.headers.get("location")) == (303, first.headers["location"])
    assert len(await stored(world)) == 1
    # What was not queued before is refused at the review.
    other = await visitor.post(f"{CLUB}/new/assign_role", carried(text) | {"request_key": "another-request"})
    assert other.status_code in (409, 422)
    assert "Review" in other.text
    assert len(await stored(world)) == 1


async def test_an_invitation_for_when_its_instance_is_due_is_the_same_request_afterwards(
    world: World, site: Site, visit: Visit, test_clock: TestClock
) -> None:
    visitor = visit("owner")
    opening = {"world": WORLD, "access": "members", "region": "eu"}
    when = {"when": "at", "at": f"{soon(minutes=5):%Y-%m-%dT%H:%M}", "zone": "UTC"}
    await visitor.post(
        f"{CLUB}/new/create_instance", carried(await reviewed(visitor, "create_instance", opening | when))
    )
    creation = encode_id(await world.db.pool.fetchval("select id from operations"))
    text = await reviewed(visitor, "invite_to_created_instance", PEOPLE | {"creation": f"{creation}.1"})
    first = await visitor.post(f"{CLUB}/new/invite_to_created_instance", carried(text))
    assert first.status_code == 303, first.text
    await test_clock.advance(timedelta(minutes=10))
    again = await visitor.post(f"{CLUB}/new/invite_to_created_instance", carried(text))
    assert (again.status_code, again.headers.get("location")) == (303, first.headers["location"])
