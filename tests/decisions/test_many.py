"""One control on many items: each by itself, with its own outcome."""

from __future__ import annotations

import pytest
from tests.decisions.conftest import Door, open_door

from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.retention import controls
from lastcall.decisions.retention.many import MOST_ITEMS, Control, Seen, control_many
from lastcall.errors import Conflict, Invalid, NotFound

EVERY_KIND = True


@pytest.mark.clause("DEC-05", "RET-16")
async def test_what_cannot_be_done_to_one_item_holds_up_none_of_the_others(
    database: Database, door: Door
) -> None:
    kept, moved, other = [await door.overdue() for _ in range(3)]
    await controls.keep(database, door.owner, door.club_id, door.kind, moved, seen_version=0)
    items = [Seen(door.kind, item, 0) for item in (kept, moved, new_id(), other)]
    outcomes = await control_many(database, door.owner, door.club_id, Control.ARCHIVE, items)
    assert [outcome.item for outcome in outcomes] == items
    assert [outcome.retention is not None for outcome in outcomes] == [True, False, False, True]
    conflict, unknown = outcomes[1].refusal, outcomes[2].refusal
    assert isinstance(conflict, Conflict)
    assert conflict.fresh.version == 1
    assert conflict.fresh.keep
    assert isinstance(unknown, NotFound)
    assert await door.archived() == 2


async def test_each_control_is_done_and_undone(database: Database, door: Door) -> None:
    item = await door.overdue()
    seen = 0
    for control, keep, is_archived in (
        (Control.KEEP, True, False),
        (Control.ARCHIVE, True, True),
        (Control.REVIVE, True, False),
        (Control.UNKEEP, False, False),
    ):
        (outcome,) = await control_many(
            database, door.owner, door.club_id, control, [Seen(door.kind, item, seen)]
        )
        assert outcome.retention is not None
        assert (outcome.retention.keep, outcome.retention.archived_at is not None) == (keep, is_archived)
        seen = outcome.retention.version
    assert seen == 4


async def test_no_items_and_too_many_are_refused_and_so_is_whoever_is_off_the_staff(
    database: Database, door: Door
) -> None:
    item = Seen(door.kind, await door.overdue(), 0)
    for items in ([], [item] * (MOST_ITEMS + 1)):
        with pytest.raises(Invalid):
            await control_many(database, door.owner, door.club_id, Control.KEEP, items)
    elsewhere = await open_door(database, "cellar", type(door))
    with pytest.raises(NotFound):
        await control_many(database, elsewhere.owner, door.club_id, Control.KEEP, [item])
