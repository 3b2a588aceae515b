"""Events over HTTP: the editor, what a change does to scheduled work, worlds, calendars, lists and drafts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from tests.web.conftest import Site, Visitor, World, user
from tests.web.test_compose_pages import carried

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import roles_of
from lastcall.db.ids import decode_id, encode_id
from lastcall.operations.schedules import EventRelative, Fixed
from lastcall.testing.staff import change_role

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"
START = datetime.now(UTC).replace(hour=20, minute=0, second=0, microsecond=0) + timedelta(days=3)
TIMED = {"title": "Opening <night>", "kind": "timed", "starts_at": f"{START:%Y-%m-%dT%H:%M}", "zone": "UTC"}


async def added(visitor: Visitor, **fields: str) -> str:
    """Add an event by its form; answers its address."""
    answer = await visitor.post(f"{CLUB}/events/new", TIMED | fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_an_event_is_written_read_and_hidden_while_it_is_a_draft(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    wrong = await visitor.post(
        f"{CLUB}/events/new", {"title": "", "kind": "timed", "starts_at": "soon", "zone": "Mars/Olympus"}
    )
    assert (wrong.status_code, "This is no time zone" in wrong.text) == (422, True)
    late = f"{START + timedelta(hours=1):%Y-%m-%dT%H:%M}"
    wrong = await visitor.post(f"{CLUB}/events/new", TIMED | {"doors_at": late})
    assert "The doors open after the start." in wrong.text
    path = await added(visitor, ends_at=f"{START + timedelta(hours=4):%Y-%m-%dT%H:%M}")
    page = await visitor.get(path)
    assert "Opening &lt;night&gt;" in page.text
    assert "Draft" in page.text
    assert (await visit("staff").get(path)).status_code == 404
    assert "Opening" not in (await visit("staff").get(f"{CLUB}/events")).text
    drafts = f"{CLUB}/events?shown=drafts"
    assert "Opening" in (await visitor.get(drafts)).text
    assert "Opening" not in (await visit("staff").get(drafts)).text
    assert (await visitor.post(f"{path}/publish")).status_code == 303
    assert "Opening" not in (await visitor.get(drafts)).text
    assert (await visit("staff").get(path)).status_code == 200
    assert "Opening" in (await visit("staff").get(f"{CLUB}/events")).text


@pytest.mark.clause("EVT-01", "EVT-03")
async def test_moving_an_event_shows_what_moves_with_it_before_it_does(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    path = await added(visitor)
    event_id = decode_id(path.rpartition("/")[2])
    before = timedelta(minutes=-30)
    await world.queue("ban_member", [1], EventRelative(event_id, before, START + before))
    await world.queue("ban_member", [2], Fixed(START, event_id))
    form = carried((await visitor.get(f"{path}/edit")).text)
    assert form["seen"] == "1"
    moved = START + timedelta(hours=2)
    fields = TIMED | {"starts_at": f"{moved:%Y-%m-%dT%H:%M}", "seen": "1"}
    review = await visitor.post(f"{path}/edit", fields)
    assert "1 scheduled action<" in review.text
    assert (user(1) in review.text, user(2) in review.text) == (True, False)
    assert await world.db.pool.fetchval("select starts_at from events") == START
    assert (await visitor.post(f"{path}/edit", carried(review.text) | {"step": "confirm"})).status_code == 303
    due = await world.db.pool.fetch("select due_at from operations order by created_at, position")
    assert await world.db.pool.fetchval("select starts_at from events") == moved
    assert due[1]["due_at"] == START
    again = await visitor.post(f"{path}/edit", fields)
    assert (again.status_code, "Somebody changed this event meanwhile." in again.text) == (409, True)


@pytest.mark.clause("EVT-05")
async def test_cancelling_an_event_names_what_it_stops_and_reinstating_brings_nothing_back(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    path = await added(visitor)
    await world.queue("ban_member", [2], Fixed(START, decode_id(path.rpartition("/")[2])))
    asked = await visitor.get(f"{path}/cancel")
    assert user(2) in asked.text
    assert "<b>stops</b>" in asked.text
    assert (await visitor.post(f"{path}/cancel")).status_code == 303
    page = (await visitor.get(path)).text
    assert "Reinstate the event" in page
    assert (await visitor.post(f"{path}/reinstate")).status_code == 303
    assert (await visitor.post(f"{path}/remove")).status_code == 303
    assert (await visitor.get(path)).status_code == 404
    generations = await world.db.pool.fetchval("select cancel_generation from events")
    assert generations == 2


async def test_a_world_is_linked_and_taken_away_and_a_wrong_one_is_said(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    path = await added(visitor)
    wrong = await visitor.post(f"{path}/worlds", {"world_id": " ", "name": ""})
    assert (wrong.status_code, "empty, too long" in wrong.text) == (422, True)
    assert (await visitor.post(f"{path}/worlds", {"world_id": "wrld_x", "name": "Bar"})).status_code == 303
    page = (await visitor.get(path)).text
    assert "Confirmed" in page
    link = re.search(rf'{path}/worlds/(\w+)"', page)
    assert link is not None
    assert (await visitor.post(f"{path}/worlds/{link[1]}", {"step": "unlink"})).status_code == 303
    assert "Bar" not in (await visitor.get(path)).text


CALENDAR = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
BEGIN:VEVENT
UID:one@example.org
SUMMARY:From <afar>
DTSTART:{START:%Y%m%dT%H%M%SZ}
DTEND:{START + timedelta(hours=3):%Y%m%dT%H%M%SZ}
END:VEVENT
BEGIN:VEVENT
UID:two@example.org
SUMMARY:Second
DTSTART:{START + timedelta(days=1):%Y%m%dT%H%M%SZ}
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.clause("EVT-02")
async def test_a_calendar_is_reviewed_and_only_what_was_chosen_becomes_events(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    imports = f"{CLUB}/events/imports"

    async def upload(content: str) -> str:
        answer = await visitor.client.post(
            imports,
            data={"form_token": await visitor.token("/"), "zone": "UTC"},
            files={"file": ("club.ics", content.encode(), "text/calendar")},
        )
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    document = await upload(CALENDAR)
    page = (await visitor.get(document)).text
    assert "From &lt;afar&gt;" in page
    assert await world.db.pool.fetchval("select count(*) from events") == 0
    items = re.findall(r'name="item" value="(\w+)"', page)
    assert len(items) == 2
    seen = carried(page)["seen"]
    assert (await visitor.post(document, {"seen": seen})).status_code == 422
    sent = {"seen": seen, "item": items[0], "step": "apply", "publish": "yes"}
    assert (await visitor.post(document, sent)).status_code == 303
    rows = await world.db.pool.fetch("select title, publication from events")
    assert [tuple(row) for row in rows] == [("From <afar>", "published")]
    assert (await visitor.post(document, sent | {"item": items[1]})).status_code == 409
    changed = (await visitor.get(await upload(CALENDAR.replace("From <afar>", "Renamed")))).text
    assert "<b>Title:</b> From &lt;afar&gt; → <b>Renamed</b>" in changed
    broken = await visitor.client.post(
        imports,
        data={"form_token": await visitor.token("/")},
        files={"file": ("x.ics", b"nothing", "text/plain")},
    )
    assert broken.status_code == 422
    private = await visitor.post(imports, {"url": "http://127.0.0.1/c.ics", "zone": "UTC"})
    assert private.status_code == 422
    assert 'id="url-wrong"' in private.text


@pytest.mark.clause("ENQ-11")
async def test_a_draft_is_its_writers_own_and_becomes_one_post(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    post = {"title": "Tonight", "text": "At nine.", "visibility": "group", "when": "now", "zone": "UTC"}
    review = f"{CLUB}/new/publish_post/review"
    begun = carried((await visitor.get(f"{CLUB}/new/publish_post")).text)
    for _ in range(2):  # a button that is pressed twice keeps one draft
        kept = await visitor.post(review, post | begun | {"text": "", "step": "save_draft"})
        assert kept.status_code == 303
    assert await world.db.pool.fetchval("select count(*) from post_drafts") == 1
    listed = (await visitor.get(f"{CLUB}/posts")).text
    link = re.search(rf'{CLUB}/new/publish_post\?draft=(\w+)"', listed)
    assert link is not None
    async with world.db.read() as tx:
        role = (await roles_of(tx, world.club_id))[-1]
    await change_role(
        world.db, world.actors["owner"], world.club_id, role.id, permissions=[Permission.PUBLISH_POSTS]
    )
    assert "Tonight" not in (await visit("staff").get(f"{CLUB}/posts")).text
    assert (await visit("staff").get(f"{CLUB}/new/publish_post?draft={link[1]}")).status_code == 404
    form = carried((await visitor.get(f"{CLUB}/new/publish_post?draft={link[1]}")).text)
    made = await visitor.post(review, post | {"draft": form["draft"]})
    confirmed = carried(made.text)
    assert confirmed["draft"] == f"{link[1]}.2"
    for _ in range(2):
        assert (await visitor.post(f"{CLUB}/new/publish_post", confirmed)).status_code == 303
    assert await world.db.pool.fetchval("select count(*) from operations") == 1
    assert "Tonight" not in (await visitor.get(f"{CLUB}/posts")).text
    late = await visitor.post(review, post | {"draft": form["draft"], "title": "Else", "step": "save_draft"})
    assert (late.status_code, "This post is queued already." in late.text) == (409, True)
    discard = f"{CLUB}/posts/{link[1]}/discard"
    for answer in (await visitor.get(discard), await visitor.post(discard, {"seen": "2"})):
        assert (answer.status_code, "This post is queued already." in answer.text) == (409, True)
    assert await world.db.pool.fetchval("select count(*) from post_drafts") == 1


async def test_a_draft_is_discarded_only_after_the_question_and_at_the_revision_it_showed(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    begun = carried((await visitor.get(f"{CLUB}/new/publish_post")).text)
    draft = {"title": "Tonight", "visibility": "group", "when": "now", "zone": "UTC", "step": "save_draft"}
    await visitor.post(f"{CLUB}/new/publish_post/review", draft | begun)
    path = f"{CLUB}/posts/{encode_id(await world.db.pool.fetchval('select id from post_drafts'))}/discard"
    listed = (await visitor.get(f"{CLUB}/posts")).text
    assert f'href="{path}"' in listed
    assert f'action="{path}"' not in listed
    asked = (await visitor.get(path)).text
    assert "Tonight" in asked
    dialog = (await visitor.get(path, headers={"HX-Request": "true"})).text
    assert ("<html" in asked, "<html" in dialog) == (True, False)
    assert carried(dialog)["seen"] == carried(asked)["seen"]
    seen = int(carried(asked)["seen"])
    assert (await visitor.post(path, {"seen": str(seen + 1)})).status_code == 409
    assert await world.db.pool.fetchval("select count(*) from post_drafts") == 1
    assert (await visitor.post(path, {"seen": str(seen)})).status_code == 303
    assert await world.db.pool.fetchval("select count(*) from post_drafts") == 0
    assert (await visitor.get(path)).status_code == 404


async def test_a_recipient_list_is_made_changed_and_deleted_at_the_revision_seen(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    lists = f"{CLUB}/lists"
    wrong = await visitor.post(f"{lists}/new", {"name": "Guests", "people": "nobody"})
    assert (wrong.status_code, "Line 1:" in wrong.text) == (422, True)
    await visitor.post(f"{lists}/new", {"name": "Guests", "people": f"{user(1)}\n{user(1)}"})
    path = f"{lists}/{encode_id(await world.db.pool.fetchval('select id from recipient_lists'))}"
    seen = carried((await visitor.get(path)).text)["seen"]
    change = {"name": "Friends", "people": user(2), "seen": seen}
    assert (await visitor.post(path, change)).status_code == 303
    stale = await visitor.post(path, change | {"people": user(3)})
    assert (stale.status_code, "Refresh to continue." in stale.text) == (409, True)
    assert f'href="{path}/delete"' in (await visitor.get(path)).text
    asked = (await visitor.get(f"{path}/delete")).text
    assert "Friends, 1 person" in asked
    assert "Friends" in unescape((await visitor.get(lists)).text), "a question deletes nothing"
    assert (await visitor.post(f"{path}/delete", {"seen": seen})).status_code == 409
    assert (await visitor.post(f"{path}/delete", {"seen": carried(asked)["seen"]})).status_code == 303
    assert "Friends" not in unescape((await visitor.get(lists)).text)
    assert (await visit("staff").get(lists)).status_code == 403
