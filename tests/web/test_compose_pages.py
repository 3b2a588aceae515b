"""New action over HTTP, for every kind: the form, the review, and what is queued is what was reviewed."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from tests.web.compose_kit import (
    CLUB,
    INSTANCE,
    PEOPLE,
    POST,
    TEXT,
    WORLD,
    Visit,
    carried,
    reviewed,
    soon,
    stored,
    timed_event,
)
from tests.web.conftest import ROLE, Site, World, user

from lastcall.db.ids import encode_id
from lastcall.errors import Unavailable
from lastcall.events.fields import EventFields
from lastcall.events.services.write import cancel_event, edit_event
from lastcall.events.times import Timed
from lastcall.operations.kinds import KINDS
from lastcall.operations.services.lists import create_list
from lastcall.web.routes import compose

OF_KIND: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    **{
        name: (PEOPLE, {"targetUserId": user(1)})
        for name in (
            "approve_request",
            "reject_request",
            "invite_member",
            "cancel_member_invite",
            "remove_member",
            "ban_member",
            "unban_member",
        )
    },
    "assign_role": (PEOPLE | {"role": ROLE}, {"targetUserId": user(1), "roleId": ROLE}),
    "remove_role": (PEOPLE | {"role": ROLE}, {"targetUserId": user(1), "roleId": ROLE}),
    "publish_post": (
        {"title": "Tonight", "text": TEXT, "visibility": "group", "roles": ROLE},
        {
            "title": "Tonight",
            "text": TEXT,
            "visibility": "group",
            "sendNotification": False,
            "roleIds": [ROLE],
        },
    ),
    "edit_post": (
        {
            "post": f"https://vrchat.com/{POST}",
            "title": "New",
            "text": "Text",
            "visibility": "public",
            "notify": "yes",
        },
        {"title": "New", "text": "Text", "visibility": "public", "sendNotification": True, "postId": POST},
    ),
    "delete_post": ({"post": POST}, {"postId": POST}),
    "create_instance": (
        {
            "world": f"https://vrchat.com/home/world/{WORLD}/info",
            "access": "plus",
            "region": "jp",
            "age": "yes",
        },
        {"worldId": WORLD, "access": "plus", "region": "jp", "ageGated": True},
    ),
    "close_instance": (
        {"world": "", "instance": f"{WORLD}:{INSTANCE}"},
        {"worldId": WORLD, "instanceId": INSTANCE},
    ),
    "invite_to_instance": (
        PEOPLE | {"world": WORLD, "instance": INSTANCE, "slot": "3"},
        {"targetUserId": user(1), "worldId": WORLD, "instanceId": INSTANCE, "messageSlot": 3},
    ),
}
"""What is filled in for each kind, and the payload that it means."""


async def test_of_every_kind_just_what_was_reviewed_is_queued(world: World, site: Site, visit: Visit) -> None:
    visitor = visit("owner")
    token = await visitor.token("/")
    assert set(OF_KIND) | {"invite_to_created_instance"} == set(KINDS)
    for kind, (filled, payload) in OF_KIND.items():
        await world.db.pool.execute("truncate operations cascade")
        text = await reviewed(visitor, kind, filled, token=token)
        for value in filled.values():
            if value.startswith(("usr_", "grol_")) and kind != "publish_post":
                assert value in text, kind
        if "text" in filled:
            assert filled["text"] in unescape(text)
        answer = await visitor.post(f"{CLUB}/new/{kind}", carried(text), token=token)
        assert answer.status_code == 303, (kind, answer.text)
        assert await stored(world) == [payload], kind


async def test_every_wrong_field_is_named_beside_itself_and_nothing_is_queued(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    text = await reviewed(
        visitor, "invite_to_instance", {"people": "", "world": "here", "instance": "12345", "slot": "12"}, 422
    )
    assert "4 things" in text
    for name in ("world-wrong", "instance-wrong", "slot-wrong", "people-none"):
        assert f'id="{name}"' in text
    text = await reviewed(
        visitor, "create_instance", {"world": WORLD, "access": "plus", "region": "eu", "roles": ROLE}, 422
    )
    assert "Only an instance for members can be restricted to roles." in text
    assert await stored(world) == []


async def test_repeated_lines_are_left_out_and_the_review_says_so(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    text = await reviewed(
        visitor, "invite_member", {"people": f"{user(1)}\n{user(2)}\n{user(1).upper().replace('USR', 'usr')}"}
    )
    assert "2 people" in text
    assert "line 3 (this repeats line 1)" in text
    await visitor.post(f"{CLUB}/new/invite_member", carried(text))
    assert [one["targetUserId"] for one in await stored(world)] == [user(1), user(2)]


async def test_a_recipient_list_adds_its_people_to_the_form(world: World, site: Site, visit: Visit) -> None:
    kept = await create_list(world.db, world.actors["owner"], world.club_id, "Regulars", [user(1), user(2)])
    visitor = visit("owner")
    assert "Regulars (2)" in (await visitor.get(f"{CLUB}/new/invite_member")).text
    text = await reviewed(
        visitor, "invite_member", {"people": user(2), "list": encode_id(kept.id), "step": "add_list"}
    )
    area = re.search(r'<textarea id="people"[^>]*>\n([^<]*)</textarea>', text)
    assert area is not None
    assert area[1].splitlines() == [user(2), user(1)]


@pytest.mark.clause("ENQ-09")
async def test_a_time_by_an_event_is_reviewed_anew_when_the_event_moved(
    world: World, site: Site, visit: Visit
) -> None:
    starts_at = soon(days=2)
    event = await timed_event(world, starts_at)
    visitor = visit("owner")
    fields = PEOPLE | {"when": "event", "event": event, "minutes": "45", "side": "before"}
    seen = carried(await reviewed(visitor, "ban_member", fields))
    assert datetime.fromisoformat(seen["reviewed"]) == starts_at - timedelta(minutes=45)
    moved = starts_at + timedelta(hours=1)
    event_id = await world.db.pool.fetchval("select id from events")
    await edit_event(
        world.db,
        world.actors["owner"],
        world.club_id,
        event_id,
        EventFields("Opening", Timed(moved), "UTC"),
        1,
    )
    refused = await visitor.post(f"{CLUB}/new/ban_member", seen)
    assert refused.status_code == 409
    assert "The event moved since you reviewed this." in refused.text
    assert await stored(world) == []
    again = carried(refused.text)
    assert datetime.fromisoformat(again["reviewed"]) == moved - timedelta(minutes=45)
    assert again["request_key"] == seen["request_key"]
    assert (await visitor.post(f"{CLUB}/new/ban_member", again)).status_code == 303
    row = await world.db.pool.fetchrow("select schedule_kind, due_at from operations")
    assert row is not None
    assert tuple(row) == ("event_relative", moved - timedelta(minutes=45))


@pytest.mark.clause("EVT-08")
async def test_the_events_world_is_filled_in_and_a_cancelled_event_is_no_choice(
    world: World, site: Site, visit: Visit
) -> None:
    event = await timed_event(world, soon(days=2), WORLD)
    visitor = visit("owner")
    form = (await visitor.get(f"{CLUB}/new/create_instance?event={event}")).text
    assert f'name="world" value="{WORLD}"' in form
    assert f'data-world="{WORLD}"' in form
    await cancel_event(
        world.db, world.actors["owner"], world.club_id, await world.db.pool.fetchval("select id from events")
    )
    assert event not in (await visitor.get(f"{CLUB}/new/create_instance")).text
    text = await reviewed(
        visitor, "ban_member", PEOPLE | {"when": "event", "event": event, "minutes": "0"}, 422
    )
    assert "That event is cancelled." in text


async def test_a_time_that_the_clock_shows_twice_or_skips_is_said_and_can_be_chosen(
    world: World, site: Site, visit: Visit
) -> None:
    # The next change back in Berlin is within the 366 days that a time may lie ahead, whenever this runs.
    year = datetime.now(UTC).year + (datetime.now(UTC).month > 9)
    sunday = max(day for day in range(25, 32) if datetime(year, 10, day).weekday() == 6)  # noqa: DTZ001
    at = f"{year}-10-{sunday}T02:30"
    visitor = visit("owner")
    first = await reviewed(visitor, "ban_member", PEOPLE | {"when": "at", "at": at})
    assert "this is the first" in first
    assert carried(first)["reviewed"].endswith("T00:30:00+00:00")
    second = await visitor.post(f"{CLUB}/new/ban_member/review", {**carried(first), "step": "second"})
    assert "this is the second" in second.text
    assert carried(second.text)["reviewed"].endswith("T01:30:00+00:00")


async def test_a_forecast_that_misses_offers_a_spread_and_the_spread_queues_all_or_nothing(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    fields = {"people": "\n".join(user(n) for n in range(40)), "role": ROLE}
    text = await reviewed(visitor, "assign_role", fields)
    assert "would be missed" in text
    spread = await visitor.post(f"{CLUB}/new/assign_role/review", {**carried(text), "step": "spread"})
    assert "would be missed" not in spread.text
    confirmed = carried(spread.text)
    parts = [int(part.split(",")[1]) for part in confirmed["spread"].split(";")]
    assert (len(parts) > 1, sum(parts)) == (True, 40)
    cut = {**confirmed, "spread": confirmed["spread"].rpartition(";")[0]}
    assert (await visitor.post(f"{CLUB}/new/assign_role", cut)).status_code == 422
    assert await stored(world) == []
    for _ in range(2):
        assert (await visitor.post(f"{CLUB}/new/assign_role", confirmed)).status_code == 303
    sizes = await world.db.pool.fetch("select size from operation_requests order by due_at")
    assert [row["size"] for row in sizes] == parts


async def test_whoever_is_banned_is_named_at_the_review_and_chosen_by_hand(
    world: World, site: Site, visit: Visit
) -> None:
    await world.db.pool.execute(
        "insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)"
        " select club_id, id, 'bans', '', epoch, $1, lastcall_now(), account_id, gen_random_uuid() from connections",
        json.dumps({"bannedUserIds": [user(2)]}),
    )
    visitor = visit("owner")
    text = await reviewed(visitor, "invite_member", {"people": f"{user(1)}\n{user(2)}"})
    assert "1 of them is banned" in text
    refused = await visitor.post(f"{CLUB}/new/invite_member", carried(text))
    assert refused.status_code == 422
    assert await stored(world) == []
    fewer = await visitor.post(
        f"{CLUB}/new/invite_member/review", {**carried(refused.text), "step": "leave_out"}
    )
    assert "1 person" in fewer.text
    assert (
        await visitor.post(f"{CLUB}/new/invite_member", carried(text) | {"banned": user(2)})
    ).status_code == 303
    assert len(await stored(world)) == 2


async def test_invitations_wait_for_the_instance_that_another_action_opens(
    world: World, site: Site, visit: Visit
) -> None:
    visitor = visit("owner")
    due_at = soon(days=1)
    opening = {"world": WORLD, "access": "members", "region": "eu"}
    when = {"when": "at", "at": f"{due_at:%Y-%m-%dT%H:%M}", "zone": "UTC"}
    await visitor.post(
        f"{CLUB}/new/create_instance", carried(await reviewed(visitor, "create_instance", opening | when))
    )
    creation = encode_id(await world.db.pool.fetchval("select id from operations"))
    page = await visitor.get(f"{CLUB}/scheduled/{creation}")
    assert f"invite_to_created_instance?creation={creation}.1" in page.text
    form = await visitor.get(f"{CLUB}/new/invite_to_created_instance?creation={creation}.1")
    assert f'value="{creation}.1" selected' in form.text
    # Now means when the instance is due.
    text = await reviewed(visitor, "invite_to_created_instance", PEOPLE | {"creation": f"{creation}.1"})
    answer = await visitor.post(f"{CLUB}/new/invite_to_created_instance", carried(text))
    assert answer.status_code == 303, answer.text
    row = await world.db.pool.fetchrow(
        "select id, due_at, depends_on from operations where depends_on is not null"
    )
    assert row is not None
    assert (row["due_at"], encode_id(row["depends_on"])) == (due_at, creation)
    # An edit may name somebody else; what it waits for stays.
    path = f"{CLUB}/scheduled/{encode_id(row['id'])}/edit"
    form = carried((await visitor.get(path)).text)
    assert form["creation"] == f"{creation}.1"
    edited = await visitor.post(f"{path}/review", form | when | {"people": user(2)})
    assert (await visitor.post(path, carried(edited.text))).status_code == 303
    assert user(2) in {one.get("targetUserId") for one in await stored(world)}
    early = await visitor.post(
        f"{CLUB}/new/invite_to_created_instance",
        carried(
            await reviewed(visitor, "invite_to_created_instance", PEOPLE | {"creation": f"{creation}.7"})
        ),
    )
    assert early.status_code in (409, 422)
    assert await world.db.pool.fetchval("select count(*) from operations") == 2


async def test_what_may_be_queued_already_is_only_offered_to_be_confirmed_again(
    world: World, site: Site, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other step makes another request, and with it everybody would be written to twice."""
    visitor = visit("owner")
    text = await reviewed(
        visitor, "assign_role", {"people": "\n".join(user(n) for n in range(100)), "role": ROLE}
    )
    assert 'value="spread"' in text
    assert 'value="change"' in text
    queue = compose.queue

    async def unclear(*arguments: Any) -> list[UUID]:
        await queue(*arguments)
        raise Unavailable("commit_unclear", "The database did not confirm this.", advice="Look first.")

    monkeypatch.setattr(compose, "queue", unclear)
    answer = await visitor.post(f"{CLUB}/new/assign_role", carried(text))
    assert answer.status_code == 503
    assert "formaction=" not in answer.text
    monkeypatch.undo()
    again = await visitor.post(f"{CLUB}/new/assign_role", carried(answer.text))
    assert again.status_code == 303
    assert len(await stored(world)) == 100


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", ""])
async def test_a_review_that_was_tampered_with_is_refused_in_a_sentence(
    world: World, site: Site, visit: Visit, moment: str
) -> None:
    visitor = visit("owner")
    fields = carried(await reviewed(visitor, "assign_role", PEOPLE | {"role": ROLE}))
    answer = await visitor.post(f"{CLUB}/new/assign_role", fields | {"spread": f"{moment},1"})
    assert answer.status_code == 422
    assert "This form is not complete." in answer.text
