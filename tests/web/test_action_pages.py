"""One action over HTTP: its page, its editor, what cancels and what settles it, and what needs attention."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from tests.web.conftest import Site, Visitor, World, user
from tests.web.test_compose_pages import carried

from lastcall.db.ids import encode_id
from lastcall.events.fields import EventFields
from lastcall.events.services.write import create_event
from lastcall.events.times import Timed
from lastcall.operations.schedules import EventRelative, Fixed, Schedule
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.edit import edit

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"
LATER = Fixed(datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=3))


@pytest.mark.clause("EDT-03")
async def test_an_editor_keeps_its_revision_whatever_happens_beside_it(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    row = (await world.queue("ban_member", [1], LATER)).operation_ids[0]
    path = f"{CLUB}/scheduled/{encode_id(row)}/edit"
    opened = await visitor.get(path)
    assert 'name="seen" value="1"' in opened.text
    form = {"seen": "1", "people": user(2), "when": "now", "zone": "UTC"}
    review = await visitor.post(f"{path}/review", form)
    assert all(person in review.text for person in (user(1), user(2)))
    payload = {"kind": "ban_member", "targetUserId": user(3)}
    await edit(world.db, world.actors["owner"], world.club_id, row, 1, payload, LATER)
    beside = await visitor.get(f"{path}?opened=1", headers={"HX-Request": "true"})
    assert "Refresh to continue." in beside.text
    assert user(3) in beside.text
    assert "<form" not in beside.text
    for address, sent in ((f"{path}/review", form), (path, carried(review.text))):
        refused = await visitor.post(address, sent)
        assert refused.status_code == 409
        assert "Refresh to continue." in refused.text
        assert all(person in refused.text for person in (user(2), user(3)))
    assert json.loads(await world.db.pool.fetchval("select payload::text from operations")) == {
        "targetUserId": user(3)
    }
    assert 'name="seen" value="2"' in (await visitor.get(path)).text


@pytest.mark.clause("EDT-01", "EDT-05")
async def test_an_edit_is_reviewed_saved_and_told_on_the_actions_page(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    row = (await world.queue("ban_member", [1], LATER)).operation_ids[0]
    path = f"{CLUB}/scheduled/{encode_id(row)}"
    form = await visitor.get(f"{path}/edit")
    assert f'value="{user(1)}"' in form.text
    wrong = await visitor.post(
        f"{path}/edit/review", {"seen": "1", "people": "nobody", "when": "at", "at": "", "zone": "UTC"}
    )
    assert (wrong.status_code, "2 things" in wrong.text) == (422, True)
    later = LATER.due_at + timedelta(hours=2)
    filled = {"seen": "1", "people": user(2), "when": "at", "at": f"{later:%Y-%m-%dT%H:%M}", "zone": "UTC"}
    review = await visitor.post(f"{path}/edit/review", filled)
    assert (await visitor.post(f"{path}/edit", carried(review.text))).status_code == 303
    page = unescape((await visitor.get(path)).text)
    for words in ("Queued by Owner", "Edited by Owner, revision 2", "Revision 1 by Owner", user(1), user(2)):
        assert words in page, words
    assert await world.db.pool.fetchval("select due_at from operations") == later
    await cancel(world.db, world.actors["owner"], world.club_id, row, 2)
    page = unescape((await visitor.get(path)).text)
    assert "Cancelled by Owner" in page
    assert "Cancelled by staff." in page
    stale = await visitor.get(f"{path}/edit")
    assert "It is not pending any more" in stale.text


@pytest.mark.parametrize("is_by_event", [False, True], ids=["at a time", "by an event"])
async def test_whoever_changes_only_the_recipient_moves_no_time(
    world: World, site: Site, visit: Visit, is_by_event: bool
) -> None:
    """A form shows whole seconds and minutes; what a program queued, or an instance made now, is finer than that."""
    visitor = visit("owner")
    due_at = LATER.due_at + timedelta(seconds=59, microseconds=250_000)
    schedule: Schedule = Fixed(due_at)
    if is_by_event:
        fields = EventFields("Opening", Timed(LATER.due_at + timedelta(hours=1)), "UTC")
        event = await create_event(world.db, world.actors["owner"], world.club_id, fields)
        schedule = EventRelative(event.id, due_at - LATER.due_at - timedelta(hours=1), due_at)
    row = (await world.queue("ban_member", [1], schedule)).operation_ids[0]
    path = f"{CLUB}/scheduled/{encode_id(row)}/edit"
    shown = (await visitor.get(path)).text
    filled = {
        "seen": "1",
        "people": user(2),
        "when": "event" if is_by_event else "at",
        "at": re.findall(r'name="at" value="([^"]*)"', shown)[0],
        "zone": re.findall(r'name="zone" value="([^"]*)"', shown)[0],
        "event": encode_id(schedule.event_id) if schedule.event_id else "",
        "minutes": re.findall(r'name="minutes" value="([^"]*)"', shown)[0],
        "side": "before",
    }
    review = await visitor.post(f"{path}/review", filled)
    assert (await visitor.post(path, carried(review.text))).status_code == 303
    row_now = await world.db.pool.fetchrow(
        "select due_at, payload ->> 'targetUserId', revision from operations"
    )
    assert row_now is not None
    assert tuple(row_now) == (due_at, user(2), 2)
    # Who does change the time gets what the form says.
    other = {**filled, "seen": "2", "at": f"{LATER.due_at:%Y-%m-%dT%H:%M}", "zone": "UTC", "minutes": "60"}
    review = await visitor.post(f"{path}/review", other)
    assert (await visitor.post(path, carried(review.text))).status_code == 303
    assert await world.db.pool.fetchval("select due_at from operations") == LATER.due_at


@pytest.mark.clause("EDT-08")
async def test_a_request_is_cancelled_after_a_review_of_what_is_left(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    batch = await world.queue("invite_member", range(4), LATER)
    await cancel(world.db, world.actors["owner"], world.club_id, batch.operation_ids[0], 1)
    path = f"{CLUB}/requests/{encode_id(batch.request_id)}"
    assert f"{path}/cancel" in (await visitor.get(path)).text
    asked = await visitor.get(f"{path}/cancel")
    assert "Cancel the 3 that are left?" in asked.text
    assert [user(n) in asked.text for n in range(4)] == [False, True, True, True]
    assert (await visitor.post(f"{path}/cancel")).status_code == 303
    states = await world.db.pool.fetch("select distinct state from operations")
    assert [row["state"] for row in states] == ["cancelled"]
    assert (await visitor.get(f"{path}/cancel")).status_code == 409


async def test_what_did_not_end_well_needs_attention_until_it_is_dismissed(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    row = (await world.queue("ban_member", [1])).operation_ids[0]
    await world.db.pool.execute(
        "select settle_unsent(club_id, id, 'rejected', 'visibility', lastcall_now()) from operations"
    )
    page = await visitor.get(f"{CLUB}/scheduled")
    block = page.text.partition("Needs attention")[2].partition("</section>")[0]
    assert f"{CLUB}/scheduled/{encode_id(row)}" in block
    assert "Not found in VRChat" in block
    assert user(1) not in block
    assert "Needs attention" not in (await visit("staff").get(f"{CLUB}/scheduled")).text
    assert (await visit("staff").post(f"{CLUB}/notices", {"notice": encode_id(row)})).status_code == 404
    assert (await visitor.post(f"{CLUB}/notices", {"notice": encode_id(row)})).status_code == 303
    assert "Needs attention" not in (await visitor.get(f"{CLUB}/scheduled")).text


@pytest.mark.clause("WRK-10")
async def test_a_finding_about_an_unknown_outcome_stands_beside_it(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    row = (await world.queue("ban_member", [1])).operation_ids[0]
    path = f"{CLUB}/scheduled/{encode_id(row)}"
    assert "What became of it?" not in (await visitor.get(path)).text
    await world.db.pool.execute(UNKNOWN)
    form = await visitor.get(path)
    assert "What became of it?" in form.text
    empty = await visitor.post(f"{path}/settle", {"seen": "0", "verdict": "happened", "note": ""})
    assert (empty.status_code, "A finding needs a reason." in empty.text) == (422, True)
    sent = {"seen": "0", "verdict": "not_seen", "note": "Nobody <is> banned."}
    assert (await visitor.post(f"{path}/settle", sent)).status_code == 303
    again = await visitor.post(f"{path}/settle", sent | {"note": "Mine"})
    assert (again.status_code, "Somebody recorded a finding meanwhile." in again.text) == (409, True)
    page = await visitor.get(path)
    assert "Not seen, found Owner" in page.text
    assert "Nobody &lt;is&gt; banned." in page.text
    assert await world.db.pool.fetchval("select state from operations") == "indeterminate"


UNKNOWN = """
    update operations
       set state = 'indeterminate', code = 'submission_outcome_unknown', completed_at = lastcall_now(),
           submitted_at = lastcall_now() - interval '5 minutes', claim_nonce = gen_random_uuid(),
           claim_account_id = (select account_id from connections where id = connection_id),
           claim_worker_id = gen_random_uuid(), claim_journal_id = gen_random_uuid(), claim_fencing_token = 1,
           claim_generation = 1, claim_expires_at = lastcall_now() - interval '3 minutes'
"""


async def test_the_history_is_filtered_by_what_an_action_is_about(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    await world.queue("ban_member", [1])
    await world.queue("ban_member", [2])
    await world.db.pool.execute(
        "select settle_unsent(club_id, id, 'missed', 'late_window_elapsed', lastcall_now()) from operations"
    )
    history = f"{CLUB}/scheduled/history"
    found = await visitor.get(history, params={"search": f"https://vrchat.com/home/user/{user(2)}"})
    assert (user(1) in found.text, f'title="{user(2)}"' in found.text) == (False, True)
    wrong = await visitor.get(history, params={"search": "somebody"})
    assert "Search for a VRChat id in full" in unescape(wrong.text)
    assert 'class="row"' not in wrong.text
