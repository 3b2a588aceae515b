"""A draft of an event exists for those who manage events only, wherever something hangs on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.web.conftest import Site, Visitor, World, user

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.db.ids import encode_id
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.services.importing import apply_items, import_file
from lastcall.events.services.write import create_event, unpublish_event
from lastcall.events.times import Timed
from lastcall.operations.schedules import EventRelative
from lastcall.operations.services.edit import edit
from lastcall.testing.staff import change_role

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"
TITLE = "Velvet Octopus"
CALENDAR = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//x//y//EN
BEGIN:VEVENT
UID:one@example.org
DTSTAMP:20260101T000000Z
DTSTART:{(datetime.now(UTC) + timedelta(days=9)):%Y%m%dT%H%M%SZ}
SUMMARY:{TITLE}
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n").encode()


@pytest.mark.parametrize("reader", ["staff", "owner"])
async def test_no_page_tells_of_a_draft_to_whoever_does_not_manage_events(
    world: World, site: Site, visit: Visit, reader: str
) -> None:
    """The same pages tell the owner of it, so that a page that never names events proves nothing here."""
    owner = world.actors["owner"]
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[-1]
    permissions = [one for one in Permission if one is not Permission.MANAGE_EVENTS]
    await change_role(world.db, owner, world.club_id, role.id, permissions=permissions)
    starts_at = datetime.now(UTC) + timedelta(days=2)
    fields = EventFields(TITLE, Timed(starts_at), "UTC")
    made = await create_event(world.db, owner, world.club_id, fields, publication=Publication.PUBLISHED)
    follows = EventRelative(made.id, timedelta(hours=-1), starts_at - timedelta(hours=1))
    queued = await world.queue("ban_member", [1], follows, by="staff")
    operation_id, event = queued.operation_ids[0], encode_id(made.id)
    payload = {"kind": "ban_member", "targetUserId": user(2)}
    await edit(world.db, owner, world.club_id, operation_id, 1, payload, follows)
    document = await import_file(world.db, owner, world.club_id, "a.ics", CALENDAR)
    await apply_items(world.db, owner, world.club_id, document.id, [document.items[0].id], document.revision)
    await unpublish_event(world.db, owner, world.club_id, made.id)
    action = encode_id(operation_id)
    visitor = visit(reader)
    named = 0
    for path in (
        "/events",
        "/events?list=past",
        f"/events/{event}",
        f"/events/{event}/edit",
        "/events/imports",
        f"/events/imports/{encode_id(document.id)}",
        "/scheduled",
        "/scheduled/history",
        f"/scheduled/history?event={event}",
        f"/scheduled/{action}",
        f"/scheduled/{action}/edit",
        f"/requests/{encode_id(queued.request_id)}",
        f"/new/ban_member?event={event}",
        f"/new/create_instance?event={event}",
        "/log",
    ):
        answer = await visitor.get(f"{CLUB}{path}")
        assert answer.status_code in (200, 404), path
        named += TITLE in answer.text
        assert reader == "owner" or TITLE not in answer.text, path
        if path == f"/scheduled/{action}":
            assert ("its details are not shown to you" in answer.text) == (reader != "owner")
    review = await visitor.post(
        f"{CLUB}/new/ban_member/review",
        {"people": user(3), "when": "event", "event": event, "minutes": "5", "zone": "UTC"},
    )
    assert (review.status_code == 200, TITLE in review.text) == (reader == "owner",) * 2
    assert (named > 5) == (reader == "owner")
