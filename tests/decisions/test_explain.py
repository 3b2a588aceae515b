"""When an item will be archived, or why it will not be: the same judgement as the sweep's, in words."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door, open_door
from tests.decisions.test_by_hand import staff

from lastcall.clubs.permissions import Permission
from lastcall.db.database import Database
from lastcall.decisions.retention import controls
from lastcall.decisions.retention.explain import Explanation, Outlook, explain, explain_item
from lastcall.decisions.retention.host import next_due, scheduled
from lastcall.errors import NotFound

EVERY_KIND = True


async def explained(door: Door, item_id: UUID) -> Explanation:
    async with door.db.read() as tx:
        return (await explain(tx, door.club_id, door.kind, [item_id]))[item_id]


async def test_each_reason_is_said_and_none_has_a_time_but_what_will_be_archived(
    database: Database, door: Door
) -> None:
    waiting, overdue = await door.waits_since(timedelta(days=5)), await door.overdue()
    kept, archived, decided = [await door.waits_since(timedelta(days=5)) for _ in range(3)]
    await controls.keep(database, door.owner, door.club_id, door.kind, kept, seen_version=0)
    await controls.archive(database, door.owner, door.club_id, door.kind, archived, seen_version=0)
    await door.decide(decided)
    expected = {
        waiting: Outlook.SCHEDULED,
        overdue: Outlook.DUE,
        kept: Outlook.KEPT,
        archived: Outlook.ARCHIVED,
        decided: Outlook.DECIDED,
    }
    found = {item: await explained(door, item) for item in expected}
    assert {item: one.outlook for item, one in found.items()} == expected
    assert found[waiting].due_at == await door.due_at(waiting) == found[waiting].idle_since + NINETY_DAYS
    assert [found[item].due_at for item in (kept, archived, decided)] == [None, None, None]
    assert found[archived].archived_by == "Owner"
    await database.pool.execute("update clubs set retention_days = null")
    assert (await explained(door, waiting)).outlook is Outlook.NEVER
    await database.pool.execute(
        "update clubs set retention_days = 90, state = 'paused', paused_at = lastcall_now(), pause_reason = 'manual'"
    )
    assert (await explained(door, waiting)).outlook is Outlook.CLUB_NOT_ACTIVE
    assert len({outlook.words for outlook in Outlook}) == len(Outlook)


@pytest.mark.clause("RET-19")
async def test_what_retention_says_of_an_item_is_for_those_who_see_the_item(
    database: Database, door: Door
) -> None:
    item = await door.overdue()
    blind = await staff(database, door, Permission.MANAGE_RETENTION)
    elsewhere = await open_door(database, "cellar", type(door))
    refusals = set()
    async with database.read() as tx:
        for actor, club_id, item_id in (
            (blind, door.club_id, item),
            (elsewhere.owner, door.club_id, item),
            (elsewhere.owner, elsewhere.club_id, item),
            (door.owner, door.club_id, elsewhere.club_id),
        ):
            with pytest.raises(NotFound) as refused:
                await explain_item(tx, actor, club_id, door.kind, item_id)
            refusals.add((refused.value.code, refused.value.sentence, refused.value.advice))
        assert len(refusals) == 1
        assert (await explain_item(tx, door.owner, door.club_id, door.kind, item)).outlook is Outlook.DUE


async def test_the_host_sees_what_is_scheduled_over_all_clubs_in_order_and_by_pages(
    database: Database, door: Door
) -> None:
    other = await open_door(database, "cellar", type(door))
    late, early = await door.waits_since(timedelta(days=1)), await other.waits_since(timedelta(days=3))
    middle = await door.waits_since(timedelta(days=2))
    async with database.read() as tx:
        first = await scheduled(tx, door.kind, limit=2)
        rest = await scheduled(tx, door.kind, after=first[-1].cursor, limit=2)
        upto = await scheduled(tx, door.kind, upto=first[0].found_at)
        waits = await next_due(tx)
    assert [one.explanation.id for one in [*first, *rest]] == [early, middle, late]
    assert [one.club for one in first] == ["cellar", "attic"]
    assert [one.explanation.id for one in upto] == [early]
    due = await other.due_at(early)
    deadline = waits.deadlines[door.kind.owner]
    assert due is not None
    assert deadline is not None
    assert timedelta(0) <= deadline - due < timedelta(milliseconds=1)
